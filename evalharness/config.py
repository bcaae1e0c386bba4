"""What a run is. Command-line flags and a YAML file (`--config`) say the same things."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from envs.base import EnvSpec
from evalharness.errors import UserError

SCRIPTED = ("oracle", "random", "reference")
MAX_TURNS = 30
"""Turns of an episode at most, where the user names no limit."""


class RunConfig(BaseModel):
    """Every field is a flag of `evalharness run` (`max_turns` is `--max-turns`)."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    model: str
    """A checkpoint directory, a hub id, `demo`, an `http(s)://.../v1` endpoint, `oracle`, `random`, `replay:RUN`.

    Of several endpoints (a list in YAML, `--model` given several times) the first; the rest are `more_endpoints`."""
    model_name: str | None = None
    """The name the endpoint serves the model by, and the name shown in tables."""
    tasks: str = "all"
    suite: str = "agentboard"
    suite_seed: int = Field(default=0, ge=0)
    questions: str | None = None
    """How many tasks are drawn where a family draws them from its suite: a number, `all`; None: its own number."""
    limit: int | None = Field(default=None, ge=1)
    samples: int = Field(default=1, ge=1)
    max_turns: int | None = Field(default=None, ge=1)
    """None: each family's own limit, which is 30 unless it says less."""
    temperature: float = Field(default=0.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_tokens: int = Field(default=256, ge=1)
    seed: int = Field(default=0, ge=0)
    perturb: str | None = None
    """Names of perturbations joined with `+`: `P1`, `P1+P4`."""
    prompts: Path | None = None
    """A folder with prompt files of the user's own; a family without one there keeps ours."""

    # How the work is done; the results do not depend on these. (On prompts they do: those are told apart by hash.)
    output: Path | None = None
    concurrency: int | None = Field(default=None, ge=1)
    """Episodes in flight; None: found while the run goes on."""
    workers: dict[str, int] = {}
    more_endpoints: tuple[str, ...] = ()
    """Further endpoints that serve the same model under the same name."""
    replicas: int = Field(default=1, ge=1)
    """How many vLLM servers are started for the model."""
    cluster: str | None = None
    """Where the workers run: `ray://host:10001`, `host:6379`, `auto`, or `local`; None: processes of this machine."""
    cluster_install: bool = False
    """Have Ray install the simulators' libraries on the nodes."""
    vllm: str | None = None
    vllm_args: str = ""
    api_key_env: str | None = None
    timeout: float = Field(default=600.0, gt=0)
    attempts: int = Field(default=3, ge=1)

    _OPERATIONAL = frozenset(
        {
            *("output", "concurrency", "workers", "more_endpoints", "replicas"),
            *("cluster", "cluster_install"),
            *("vllm", "api_key_env", "timeout", "attempts", "prompts"),
        }
    )

    @model_validator(mode="before")
    @classmethod
    def _several_models(cls, values: Any) -> Any:
        if isinstance(values, dict) and isinstance(values.get("model"), list):
            first, *more = values["model"] or [None]
            values = {**values, "model": first, "more_endpoints": (*values.get("more_endpoints", ()), *more)}
        return values

    @model_validator(mode="after")
    def _only_endpoints_come_in_numbers(self) -> RunConfig:
        if self.more_endpoints:
            for model in (self.model, *self.more_endpoints):
                if not model.startswith(("http://", "https://")):
                    raise ValueError(
                        f"{model} is no endpoint: --model may be given several times only for endpoints "
                        "(http://host:port/v1); for several servers of one checkpoint use --replicas"
                    )
        if self.replicas > 1 and (self.is_endpoint or self.is_scripted):
            raise ValueError(
                "--replicas is for a vLLM that evalharness starts; give --model several times for endpoints"
            )
        return self

    @field_validator("suite")
    @classmethod
    def _known_suite(cls, name: str) -> str:
        from envs import specs
        from evalharness.suites.selection import nearest, suites_of

        if name not in (known := suites_of(specs())):
            raise ValueError(f"no such suite{nearest(name, known)}")
        return name

    @field_validator("questions", mode="before")
    @classmethod
    def _a_number_or_all(cls, value: Any) -> Any:
        if value is None or value == "all":
            return value
        if isinstance(value, bool) or not str(value).isdecimal() or int(str(value)) < 1:
            raise ValueError("give a number above 0, or all")
        return str(int(str(value)))

    @field_validator("perturb")
    @classmethod
    def _normal_perturb(cls, name: str | None) -> str | None:
        from evalharness.protocol.perturb import normal_name

        return None if name is None else normal_name(name)

    def identity(self) -> dict[str, Any]:
        """The part of the configuration that results depend on, as JSON data."""
        data: dict[str, Any] = self.model_dump(mode="json", exclude=set(self._OPERATIONAL))
        data["max_turns"] = (
            self.max_turns or MAX_TURNS
        )  # families with less are in the manifest's `turn_limits`
        if self.questions is None:
            del data["questions"]
        if self.is_endpoint:
            # A server that comes back on another port is the same model; its name is what counts.
            data["model"] = "endpoint"
        return data

    def turn_limit(self, spec: EnvSpec) -> int:
        """Turns of an episode of that family: what the user says, else the family's own limit."""
        return self.max_turns or min(spec.max_turns, MAX_TURNS)

    @property
    def is_endpoint(self) -> bool:
        return self.model.startswith(("http://", "https://"))

    @property
    def is_scripted(self) -> bool:
        """Answers without a model: only the environments take time."""
        return self.model in SCRIPTED or self.model.startswith("replay:")

    @property
    def endpoints(self) -> tuple[str, ...]:
        return (self.model, *self.more_endpoints) if self.is_endpoint else ()

    @property
    def display_name(self) -> str:
        """What tables call the model."""
        return self.model_name or (self.model if self.is_endpoint else Path(self.model).name or self.model)

    def folder(self) -> Path:
        """Where the run goes: the same options give the same folder, so the same command continues."""
        if self.output is not None:
            return self.output
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.display_name).strip("-.")[:60] or "model"
        # A limit of 30 that was asked for is another one than none where a family has less of its own.
        asked = {"asked_turns": MAX_TURNS} if self.max_turns == MAX_TURNS else {}
        key = json.dumps({**self.identity(), "endpoint": self.model, **asked}, sort_keys=True)
        if self.perturb is not None:
            name += "-" + re.sub(r"[^A-Za-z0-9+_-]+", "-", self.perturb)[:40]
        return Path("results") / f"{name}-{self.suite}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def _explain(error: ValidationError, source: str) -> str:
    lines = []
    for problem in error.errors():
        if not problem["loc"]:
            lines.append(f"{source}{problem['msg'].removeprefix('Value error, ')}")
            continue
        name = ".".join(str(part) for part in problem["loc"])
        flag = "--" + name.replace("_", "-")
        given = problem.get("input")
        lines.append(f"{source}{flag} {given}: {problem['msg'][0].lower()}{problem['msg'][1:]}")
    return "; ".join(lines)


def read_config(path: Path) -> dict[str, Any]:
    """A YAML file of options; relative to nothing, merged under the flags."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"no configuration file {path}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"configuration file {path} is not readable: {error}") from None
    if not isinstance(data, dict):
        raise UserError(f"configuration file {path} is not a mapping of options to values")
    return {str(key).replace("-", "_"): value for key, value in data.items()}


def make_config(flags: dict[str, Any], config_file: Path | None = None) -> RunConfig:
    """Flags over file over defaults. Raises UserError naming the option that is wrong."""
    values = read_config(config_file) if config_file else {}
    values |= {key: value for key, value in flags.items() if value is not None}
    if "model" not in values:
        raise UserError(
            "no model: give --model DIR, --model http://host:port/v1, --model demo or --model oracle"
        )
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        raise UserError(_explain(error, "")) from None
