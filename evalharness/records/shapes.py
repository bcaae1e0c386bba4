"""What the files of a run folder must look like. A file is text from outside: a line that fell victim to an editor, a
sync tool or a disk becomes a record of the right shape here, or a ValueError that says in one line where it is wrong.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from evalharness.records.episode import Episode

Count = Annotated[int, Field(ge=0, le=10**9)]
Counts = dict[str, Count]


class _Stored(BaseModel):
    """Keys that nobody asks for may be there: a later version writes more."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


class _Config(_Stored):
    suite_seed: Count
    samples: Annotated[int, Field(ge=1, le=10**6)]
    max_turns: Annotated[int, Field(ge=1, le=10**6)]
    max_tokens: int | None = None
    temperature: Annotated[float, Field(ge=0)] | None
    """None: the model's own recommendation."""
    perturb: str | None = None


class _Identity(_Stored):
    config: _Config
    model: dict[str, Any]
    tasks_sha256: dict[str, str]
    prompts_sha256: dict[str, str]
    turn_limits: dict[str, Annotated[int, Field(ge=1, le=10**6)]] = {}


class _Policy(_Stored):
    requests: list[dict[str, Any]] | None = None


class _Session(_Stored):
    started: Annotated[float, Field(ge=0, le=1e11)]
    evalharness: str
    label: dict[str, str] | None = None
    policy: _Policy | None = None


class _Draw(_Stored):
    tasks: Count
    seed: int


class _Manifest(_Stored):
    digest: str
    identity: _Identity
    model_name: str
    suite: str
    counts: Counts
    expected: Counts
    held_out: Counts
    titles: dict[str, str]
    labels: dict[str, str]
    sessions: Annotated[list[_Session], Field(min_length=1)]
    draw: dict[str, _Draw] = {}
    scores: dict[str, dict[str, Any]] = {}

    @model_validator(mode="after")
    def _every_family_is_described(self) -> _Manifest:
        for name in ("expected", "titles", "labels"):
            described = getattr(self, name)
            for family in sorted(self.counts.keys() ^ described.keys()):
                lacks, has = (name, "counts") if family in self.counts else ("counts", name)
                raise ValueError(f"{lacks} does not name {family!r}, which {has} does")
        return self


class _Failure(_Stored):
    task_id: str
    sample: Count
    final: bool = False


class _Server(_Stored):
    running_mean: float
    waiting_mean: float
    prompt_tokens_per_s: float
    generation_tokens_per_s: float
    kv_cache_usage_peak: float
    prefix_cache_hit_rate: float | None
    prefix_cache_expected: float | None = None


class _Event(_Stored):
    event: str
    at_s: float


class _Time(_Stored):
    """Of what `evalharness.engine.efficiency` writes, all that a table shows."""

    efficiency: float | None
    bound: Literal["model", "environments", "longest_episode"]
    time: dict[str, float]
    server: _Server | None
    events: list[_Event]
    advice: str | None


class _Prices(_Stored):
    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]
    input_cache_read: Annotated[float, Field(ge=0)] | None = None
    input_cache_write: Annotated[float, Field(ge=0)] | None = None


class _Tokens(BaseModel):
    """Nothing else: they are added up by name."""

    model_config = ConfigDict(extra="forbid", strict=True)

    prompt: Annotated[int, Field(ge=0)]
    cached: Annotated[int, Field(ge=0)]
    completion: Annotated[int, Field(ge=0)]


class _Timing(_Stored):
    wall_s: float | None = None
    sessions: int | None = None
    efficiency: float | None = None
    performance: _Time | None = None
    prices: _Prices | None = None
    unfinished_tokens: _Tokens | None = None
    stopped: str | None = None


def _why(error: ValidationError) -> str:
    """The first of what is wrong, `identity.config.samples: input should be a valid integer`."""
    first = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(str(part) if str(part).isprintable() else ascii(part) for part in first["loc"])
    text = first["msg"].removeprefix("Value error, ")
    return f"{key}: {text[0].lower()}{text[1:]}" if key else text


def _conform(shape: type[BaseModel], value: object) -> None:
    try:
        shape.model_validate(value)
    except ValidationError as error:
        raise ValueError(_why(error)) from None


def check_manifest(value: object) -> None:
    """Raises ValueError unless `value` has what is read of a manifest."""
    _conform(_Manifest, value)


def check_failure(value: object) -> None:
    """Raises ValueError unless `value` is a line of `errors.jsonl`."""
    _conform(_Failure, value)


def check_timing(value: object) -> None:
    """Raises ValueError unless `value` is what a summary says of time."""
    _conform(_Timing, value)


@cache
def _episodes() -> TypeAdapter[Episode]:
    return TypeAdapter(Episode)


def read_object(line: bytes) -> dict[str, Any]:
    """Raises ValueError where `line` is no JSON object."""
    try:
        value = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def read_episode(line: bytes) -> Episode:
    """An episode as `episodes.jsonl` holds it. Raises ValueError."""
    try:
        return _episodes().validate_json(line)
    except ValidationError as error:
        if error.errors()[0]["type"] != "json_invalid":
            raise ValueError(_why(error)) from None
    # Half a surrogate pair, as Python's JSON writes and reads it, is refused there, and no file or terminal could hold
    # it: it is read as its code point in letters.
    text = json.dumps(read_object(line), ensure_ascii=False)
    whole = re.sub("[\ud800-\udfff]", lambda half: f"\\\\u{ord(half.group()):04x}", text)
    try:
        return _episodes().validate_json(whole)
    except ValidationError as error:
        raise ValueError(_why(error)) from None
