"""Define the record of a played task: an episode and its turns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from evalharness.base.reading import read_object
from evalharness.protocol.tools import ToolCall
from evalharness.records.outside import Outside
from evalharness.records.stored import why

EndedBy = Literal[
    "success",
    "environment",
    "turn_limit",
    "policy_stopped",
    "context_full",
    "content_filter",
    "simulator_halted",
]
"""`context_full`: the prompt does not fit into the context even without old turns. `content_filter`: the server's
content filter withheld a reply. `simulator_halted`: the last action halted the simulator in two tries."""
STORED = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
"""Validation rules for a record from a run folder (`read_episode`)."""
# A value outside these bounds means that the stored line is damaged.
Fraction = Annotated[float, Field(ge=0, le=1 + 1e-9)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Index = Annotated[int, Field(ge=0, le=2**31)]
Seconds = Annotated[float, Field(ge=-1e8, le=1e8)]
UnixTime = Annotated[float, Field(ge=0, le=1e11)]


def read_environment_end(info: Mapping[str, Any]) -> EndedBy:
    """Return how the environment ended the episode, from the `info` of its last step."""
    return "success" if info["success"] else "simulator_halted" if info.get("halted") else "environment"


class Record:
    """Base class of an episode and of its parts in a line of `episodes.jsonl`."""

    __pydantic_config__: ClassVar[ConfigDict] = STORED
    where_set: ClassVar[tuple[str, ...]] = ()
    """Rare keys, which are written only if they have a value; so lines of runs without them stay as in old versions."""

    def to_json(self) -> dict[str, Any]:
        # `asdict` would copy every value, which takes five times as long.
        kept = {key: value for key, value in vars(self).items() if value or key not in self.where_set}
        return kept | {key: tuple(map(_plain, value)) for key, value in kept.items() if type(value) is tuple}


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_json()
    return dict(vars(value)) if isinstance(value, ToolCall) else value


@dataclass(frozen=True)
class FailedTry(Record):
    """A request without a usable answer; it was sent again."""

    kind: str
    """One of `connect`, `timeout`, `truncated`, `busy`, `server_error`, `invalid`, `too_long`, `another_model`."""
    error: str
    seconds: float
    """Seconds from the request to the failure."""
    waited: float
    """Pause in seconds between this failure and the next try; 0 after the last try."""


@dataclass(frozen=True)
class FurtherCall(Record):
    """A model call whose reply is not an action, for example a reflection."""

    purpose: str
    """For example `reflect` or `summarise`."""
    reply: str
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    stopped_by: str | None = None
    """Stop sequence that ended the reply, if the server reports it."""
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    cached_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    latency_s: Seconds = 0.0
    failed_tries: tuple[FailedTry, ...] = ()
    sent: str | None = None
    """Hash of the request's messages, as in `Turn.sent`."""


@dataclass(frozen=True)
class Turn(Record):
    """One thought and action of the policy, and the observation of the environment. Times are in seconds."""

    where_set: ClassVar[tuple[str, ...]] = ("further", "valid_actions", "sent", "stopped_by", "prompt_cut")

    turn: Index
    reply: str
    """The whole reply; reasoning that the server sent separately is only in `reasoning`."""
    thought: str
    action: str | None
    """Action in the model's words. None if the reply had no action; then the observation is the correction."""
    observation: str
    progress: Fraction
    valid: bool
    format_errors: tuple[str, ...] = ()
    subgoals_completed: tuple[Index, ...] = ()
    no_effect: bool | None = None
    """Whether a valid action changed nothing (`Info.no_effect`); None if the environment does not report it."""
    finish_reason: str = "stop"
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    cached_tokens: Count | None = None
    """Number of prompt tokens that the server read from its cache; None if the server does not report the number."""
    policy_s: Seconds = 0.0
    """Time until the policy gave its reply, including queueing, failed tries and the pauses between tries."""
    latency_s: Seconds = 0.0
    """Time of the successful request."""
    failed_tries: tuple[FailedTry, ...] = ()
    environment_s: Seconds = 0.0
    """Time in the simulator, measured by its process."""
    worker_s: Seconds = 0.0
    """Other waiting time for the environment: its process was starting, or it served another episode."""
    reasoning: str = ""
    """Reasoning before the reply; the server sent it separately, or the reply had a `<think>` block."""
    reasoning_tokens: Count | None = None
    """Part of `completion_tokens`; None if the server does not count it."""
    calls: tuple[ToolCall, ...] = ()
    """Tool calls in the reply, if actions are tool calls. The action is the first tool call if it calls `act`."""
    further: tuple[FurtherCall, ...] = ()
    """Other model calls in this turn, before the call for the action."""
    valid_actions: tuple[str, ...] | None = None
    """Valid actions after the observation, as given to the agent; None if the agent does not ask for them."""
    sent: str | None = None
    """Hash of the messages that were sent (`agents.guard`); None in older runs."""
    stopped_by: str | None = None
    """Stop sequence that ended the reply, for agents with their own stop sequences; `react` records a format error."""
    prompt_cut: bool = False
    """Whether the server dropped a part of the prompt: the prompt grew, but the server's token count did not."""


@dataclass(frozen=True)
class Trim(Record):
    """A removal of old turns from a prompt: in `turn` the context was full, and the agent dropped `dropped` turns."""

    where_set: ClassVar[tuple[str, ...]] = ("call",)

    turn: Index
    dropped: Index
    call: Index = 0
    """Index of the request in the turn."""


@dataclass(frozen=True)
class Trial(Record):
    """An earlier trial at the task, by an agent that reflects and tries again."""

    turns: tuple[Turn, ...]
    progress: Fraction
    success: bool
    solved: bool
    ended_by: EndedBy
    trims: tuple[Trim, ...] = ()
    further: tuple[FurtherCall, ...] = ()
    """Model calls after the last turn: the reflection."""


@dataclass(frozen=True)
class Episode(Record):
    """One attempt (`sample`) at a task. If the agent had several trials, turns and scores are the last trial's."""

    where_set: ClassVar[tuple[str, ...]] = (
        "figures", "further", "earlier", "first_valid_actions", "outside", "words"
    )  # fmt: skip

    task_id: str
    family: str
    suite: str
    kind: str
    difficulty: str
    labels: str
    sample: Index
    perturbation: str | None
    goal: str
    first_observation: str
    turns: tuple[Turn, ...]
    progress: Fraction
    success: bool
    solved: bool
    ended_by: EndedBy
    trims: tuple[Trim, ...]
    subgoals: tuple[str, ...]
    task_hash: str
    prompt_hash: str
    policy_s: Seconds
    environment_s: Seconds
    started: UnixTime
    """Start as Unix time."""
    wall_s: Seconds
    worker_s: Seconds = 0.0
    plan: str | None = None
    """Name of the reference plan that the policy followed; None if the policy chose the actions itself."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Figures that the family defines for an episode (`OwnBenchmark.scores`)."""
    further: tuple[FurtherCall, ...] = ()
    """Model calls after the last turn, in an unfinished turn."""
    earlier: tuple[Trial, ...] = ()
    """Trials before the last one; all failed."""
    first_valid_actions: tuple[str, ...] | None = None
    """Valid actions after the first observation, if the agent asks for them."""
    outside: Outside | None = None
    """Facts about an external agent (`--agent external`)."""
    words: str = ""
    """Name of the game's own action vocabulary (`Task.words`); empty if the family's vocabulary was used."""

    @property
    def all_turns(self) -> tuple[Turn, ...]:
        """Return all turns, including those of earlier trials."""
        return (*(turn for trial in self.earlier for turn in trial.turns), *self.turns)

    @property
    def model_calls(self) -> Iterator[Turn | FurtherCall]:
        """Yield all requests to the model in order, including those of earlier trials."""
        parts: list[Trial | Episode] = [*self.earlier, self]
        for part in parts:
            for turn in part.turns:
                yield from turn.further
                yield turn
            yield from part.further

    @property
    def dropped_before(self) -> dict[int, int]:
        """Return turn -> number of turns dropped before it, summed over the requests of the turn."""
        dropped: dict[int, int] = {}
        for trim in self.trims:
            dropped[trim.turn] = dropped.get(trim.turn, 0) + trim.dropped
        return dropped

    @property
    def valid_turns(self) -> int:
        return sum(turn.valid for turn in self.turns)

    @property
    def grounding_accuracy(self) -> float:
        """Share of turns whose action the environment could carry out, 0..1; 0 without turns."""
        return self.valid_turns / len(self.turns) if self.turns else 0.0

    @property
    def format_error_turns(self) -> int:
        """Number of turns whose reply has a format error; the reply may still contain a readable action."""
        return sum(bool(turn.format_errors) for turn in self.turns)

    @property
    def prompt_tokens(self) -> int:
        """Sum over all calls; a call without a reported number counts as 0."""
        return sum(call.prompt_tokens or 0 for call in self.model_calls)

    @property
    def completion_tokens(self) -> int:
        """Sum over all calls; a call without a reported number counts as 0."""
        return sum(call.completion_tokens or 0 for call in self.model_calls)

    @property
    def reasoning_tokens(self) -> int:
        """Sum over all calls; a call without a reported number counts as 0."""
        return sum(call.reasoning_tokens or 0 for call in self.model_calls)

    @property
    def outcome(self) -> dict[str, Any]:
        """Return the episode's identity and result for tables and exports. Progress is a fraction 0..1."""
        return {
            "task_id": self.task_id,
            "family": self.family,
            "suite": self.suite,
            "kind": self.kind,
            "difficulty": self.difficulty,
            "labels": self.labels,
            "sample": self.sample,
            "perturbation": self.perturbation,
            "success": self.success,
            "solved": self.solved,
            "progress": float(self.progress),
        }

    def to_json(self) -> dict[str, Any]:
        outside = {} if self.outside is None else {"outside": self.outside.to_json()}
        return super().to_json() | outside


@cache
def _episodes() -> TypeAdapter[Episode]:
    return TypeAdapter(Episode)


def read_episode(line: bytes) -> Episode:
    """Read an episode from a line of `episodes.jsonl`. Raise ValueError if the line is invalid."""
    try:
        return _episodes().validate_json(line)
    except ValidationError as error:
        if error.errors()[0]["type"] != "json_invalid":
            raise ValueError(why(error)) from None
    # pydantic refuses unpaired surrogates, which Python's JSON allows. Replace each by its escaped code point, because
    # no file or terminal can show it.
    text = json.dumps(read_object(line), ensure_ascii=False)
    whole = re.sub("[\ud800-\udfff]", lambda half: f"\\\\u{ord(half.group()):04x}", text)
    try:
        return _episodes().validate_json(whole)
    except ValidationError as error:
        raise ValueError(why(error)) from None
