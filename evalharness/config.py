"""What a run is. Command-line flags and a YAML file (`--config`) say the same things."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from envs.base import MAX_TURNS
from evalharness.errors import UserError

SCRIPTED = ("oracle", "random", "reference")
SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty"),
)
"""How the next token is drawn."""


class RunConfig(BaseModel):
    """Every field is a flag of `evalharness run` (`max_turns` is `--max-turns`)."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    model: str
    """A checkpoint directory, a hub id, `demo`, an `http(s)://.../v1` endpoint, `oracle`, `random`, `replay:RUN`.

    Of several endpoints (a list in YAML, `--model` given several times) the first; the rest are `more_endpoints`."""
    model_name: str | None = None
    """The name the endpoint serves the model by, and the name shown in tables."""
    tasks: str = "all"
    suite: Literal["agentboard", "open"] = "agentboard"
    suite_seed: int = Field(default=0, ge=0)
    limit: int | None = Field(default=None, ge=1)
    samples: int = Field(default=1, ge=1)
    max_turns: int = Field(default=MAX_TURNS, ge=1, le=1_000_000)
    temperature: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_tokens: int = Field(default=256, ge=1)
    seed: int = Field(default=0, ge=0)
    top_k: int = Field(default=-1, ge=-1)
    """Only the K likeliest tokens are drawn from; -1: all."""
    min_p: float = Field(default=0.0, ge=0, le=1)
    """Only tokens at least P times as likely as the likeliest are drawn from."""
    presence_penalty: float = Field(default=0.0, ge=-2, le=2)
    frequency_penalty: float = Field(default=0.0, ge=-2, le=2)
    repetition_penalty: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Above 1 a token that is already in the conversation is less likely, also at temperature 0."""
    sampling: str | None = None
    """A file (JSON or YAML) with values of the options above, or `model`: what the checkpoint recommends. An option
    that is given itself counts more than either."""
    perturb: str | None = None
    """Names of perturbations joined with `+`: `P1`, `P1+P4`."""
    prompts: Path | None = None
    """A folder with a prompt file of the user's own for each family that is played."""

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
    timeout: float = Field(default=600.0, gt=0, allow_inf_nan=False)
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

    @model_validator(mode="before")
    @classmethod
    def _sampling_from_file(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("sampling") in (None, "model"):
            return values
        stated = read_sampling(Path(str(values["sampling"])))
        return {**stated, **values, "sampling": None}

    @field_validator("top_k")
    @classmethod
    def _all_tokens(cls, top_k: int) -> int:
        return top_k or -1

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

    @field_validator("output", mode="before")
    @classmethod
    def _names_a_folder(cls, folder: Any) -> Any:
        # `Path("")` would be the current folder, as after `-o "$OUT"` with OUT unset.
        if isinstance(folder, str) and (not folder.strip() or "\0" in folder):
            raise ValueError("no name of a folder")
        return folder

    @field_validator("perturb")
    @classmethod
    def _normal_perturb(cls, name: str | None) -> str | None:
        from evalharness.protocol.perturb import normal_name

        return None if name is None else normal_name(name)

    def sampling_fields(self) -> dict[str, float | None]:
        """How replies are drawn, token limit and seed aside; None: left to the model's own recommendation."""
        left_open = set(SAMPLING) - self.model_fields_set if self.sampling == "model" else set()
        return {name: None if name in left_open else getattr(self, name) for name in SAMPLING}

    def identity(self) -> dict[str, Any]:
        """The part of the configuration that results depend on, as JSON data."""
        data: dict[str, Any] = self.model_dump(mode="json", exclude=set(self._OPERATIONAL))
        if self.is_scripted:
            # What came after these runs were first made, and changes nothing for them.
            for name in (*SAMPLING[2:], "sampling"):
                del data[name]
        else:
            data |= self.sampling_fields()
        if self.is_endpoint:
            # A server that comes back on another port is the same model: what it says of itself counts (served.py).
            data["model"] = "endpoint"
        return data

    @property
    def is_endpoint(self) -> bool:
        return self.model.startswith(("http://", "https://"))

    @property
    def is_scripted(self) -> bool:
        """Answers without a model: only the environments take time."""
        return self.model in SCRIPTED or self.model.startswith("replay:")

    def doubts(self) -> list[str]:
        """What is allowed and hardly meant, a line each."""
        alike = self.model == "oracle" or not self.is_scripted
        if self.samples > 1 and self.temperature == 0 and alike:
            return [
                f"--samples {self.samples} at temperature 0 plays every task {self.samples} times alike, but for what "
                "the server itself does not repeat; for different attempts give --temperature 1"
            ]
        return []

    @property
    def endpoints(self) -> tuple[str, ...]:
        return (self.model, *self.more_endpoints) if self.is_endpoint else ()

    @property
    def display_name(self) -> str:
        """What tables call the model."""
        return self.model_name or (self.model if self.is_endpoint else Path(self.model).name or self.model)

    def folder(self, address: str | None = None) -> Path:
        """Where the run goes: the same options give the same folder, so the same command continues.

        `address` as in `policy.resolve.Prepared`: an endpoint's URL, only where nothing else tells models apart.
        """
        if self.output is not None:
            return self.output
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.display_name).strip("-.")[:60] or "model"
        endpoint = address if self.is_endpoint else self.model
        key = json.dumps({**self.identity(), "endpoint": endpoint}, sort_keys=True)
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
        why = problem["msg"].removeprefix("Value error, ")
        lines.append(f"{source}{flag} {given}: {why[0].lower()}{why[1:]}")
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


def read_sampling(path: Path) -> dict[str, Any]:
    """What a file says of how replies are drawn; a checkpoint's `generation_config.json` is such a file."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"--sampling {path}: no such file; give a file of values, or model") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"--sampling {path} is not readable: {error}") from None
    found = {name: data[name] for name in SAMPLING if data.get(name) is not None} if isinstance(data, dict) else {}
    if not found:
        raise UserError(f"--sampling {path} names none of {', '.join(SAMPLING)}")
    # A generation_config.json holds much else, of which nothing is sampling.
    if "transformers_version" not in data and (unknown := sorted(map(str, data.keys() - set(SAMPLING)))):
        raise UserError(f"--sampling {path} names {unknown[0]!r}, which is none of {', '.join(SAMPLING)}")
    return found


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
