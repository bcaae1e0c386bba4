"""What a run is. Command-line flags and a YAML file (`--config`) say the same things."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from envs.base import MAX_TURNS, EnvSpec
from evalharness.errors import UserError, nearest
from evalharness.paths import folder_name
from evalharness.protocol.prompt import Adaptation
from evalharness.settings import openai_hint, read_config
from evalharness.yaml_lines import syntax_problem

SCRIPTED = ("oracle", "random", "reference")
SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty"),
)
"""How the next token is drawn."""
_OURS = frozenset(
    {
        *SAMPLING,
        *("model", "messages", "max_tokens", "max_completion_tokens", "stop", "seed", "n", "stream", "tools"),
        *("tool_choice", "response_format", "chat_template_kwargs", "return_token_ids", "logprobs"),
    }
)
"""Fields of a request that options say, or that the harness needs as they are."""


@dataclass(frozen=True)
class Option:
    """Beside a field's type (`Annotated`): what its flag looks like, and whether results depend on it."""

    metavar: str | None = None
    """None: `N` for a whole number, `X` for a fraction, `DIR` for a path, `NAME=VALUE` for a mapping, else `TEXT`."""
    short: str | None = None
    """`-o`."""
    repeated: bool = False
    """The flag of a single value may be given several times."""
    no_flag: bool = False
    """Only for a configuration file and Python."""
    operational: bool = False
    """How the work is done: results do not depend on it, so that a run may be continued with another value."""
    later: bool = False
    """Added when there were runs without it: a part of their identity, and of their folder's name, only where it is not
    the default."""
    by_content: bool = False
    """Results depend on what it names and not on the name: that is part of a run's identity as a hash, elsewhere."""
    text: bool = False
    """The flag takes a text, of which the field's validator makes the number."""
    model_only: bool = False
    """Changes nothing for a scripted policy, and is not in its run's identity."""


_NO_OPTION = Option()


def option_of(field: FieldInfo) -> Option:
    return next((extra for extra in field.metadata if isinstance(extra, Option)), _NO_OPTION)


class RunConfig(BaseModel):
    """Every field is an option of `evalharness run` (`max_turns` is `--max-turns`), made of the field alone.

    The first paragraph of its docstring is the flag's help and its line in docs/cli.md; the default is added to it.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, protected_namespaces=(), use_attribute_docstrings=True
    )

    model: Annotated[str, Option("MODEL", repeated=True)]
    """a checkpoint directory or hub id (served by a vLLM started for the run), http://host:port/v1 (any
    OpenAI-compatible server; given several times, servers of the same model that share the episodes), demo (a small
    model that acts), demo-base (the same before it was trained to), oracle, random, or replay:RUN

    Of several endpoints (a list in YAML) the first; the rest are `more_endpoints`."""
    lora: Annotated[Path | None, Option(later=True)] = None
    """a LoRA adapter of --model, which is its base: merged once and kept in the cache (or see --lora-serve); an adapter
    alone, given as --model, finds its base itself"""
    lora_serve: Annotated[bool, Option(later=True)] = False
    """leave the adapter beside its base in vLLM instead of merging it"""
    model_name: Annotated[str | None, Option("NAME")] = None
    """the name an endpoint serves the model by; shown in tables"""
    tasks: Annotated[str, Option("LIST|@FILE")] = "all"
    """all, or a comma list of FAMILY, FAMILY:0-9, FAMILY:kind=KIND, FAMILY:difficulty=easy|hard (also all:...) and task
    ids; @FILE: such a list from a file, a line each

    In YAML and Python a list will do."""
    suite: str = "agentboard"
    """agentboard: the published benchmark, needs its data; open: built in, needs none; or a suite that a family brings
    of its own (default: agentboard where its data is imported, else open)"""
    suite_seed: int = Field(default=0, ge=0)
    """which open suite; 0 is the frozen one"""
    questions: Annotated[str | None, Option("N|all")] = None
    """how many tasks are drawn, by --suite-seed, where a family draws them from a larger suite (default: as many as the
    family says)"""
    limit: int | None = Field(default=None, ge=1)
    """only the first N tasks of each family: for a try, since the first tasks are not like all (--sample draws)"""
    sample: Annotated[int | None, Option(later=True)] = Field(default=None, ge=1)
    """N tasks of each family, drawn by --suite-seed and spread over its kinds of tasks (--samples: attempts at each)"""
    samples: int = Field(default=1, ge=1)
    """attempts at each task"""
    max_turns: int | None = Field(default=None, ge=1, le=1_000_000)
    """turns of an episode (default: 30, or less where the family has less)"""
    temperature: Annotated[float, Option("T")] = Field(default=0.0, ge=0, allow_inf_nan=False)
    """of sampling; 0 is greedy"""
    top_p: Annotated[float, Option("P")] = Field(default=1.0, gt=0, le=1)
    """sample from the most likely tokens that have this probability together"""
    top_k: Annotated[int, Option("K", model_only=True)] = Field(default=-1, ge=-1)
    """sample from the K most likely tokens; -1: from all"""
    min_p: Annotated[float, Option("P", model_only=True)] = Field(default=0.0, ge=0, le=1)
    """sample from tokens at least P times as likely as the most likely one"""
    presence_penalty: Annotated[float, Option(model_only=True)] = Field(default=0.0, ge=-2, le=2)
    """of tokens that are in the reply already; 0: none"""
    frequency_penalty: Annotated[float, Option(model_only=True)] = Field(default=0.0, ge=-2, le=2)
    """of tokens by how often they are in the reply already; 0: none"""
    repetition_penalty: Annotated[float, Option(model_only=True)] = Field(
        default=1.0, gt=0, allow_inf_nan=False
    )
    """of tokens that are in the conversation already, also at temperature 0; 1: none"""
    sampling: Annotated[str | None, Option("FILE|model", model_only=True)] = None
    """the sampling options above from a JSON or YAML file, or as the checkpoint recommends them (model); an option
    that is given itself counts more"""
    max_tokens: int = Field(default=256, ge=1)
    """tokens of one reply, reasoning included"""
    seed: int = Field(default=0, ge=0)
    """of sampling and of the random policy"""
    perturb: Annotated[str | None, Option("NAME[+NAME]")] = None
    """the environment in other words: P1, P1+P4; see: evalharness perturb list"""
    chat_template: Annotated[Path | None, Option("FILE", by_content=True)] = None
    """a chat template (Jinja) in place of the checkpoint's own, for the vLLM that is started"""
    chat_template_kwargs: Annotated[str, Option("JSON", model_only=True)] = ""
    """arguments of the chat template: '{"enable_thinking": false}'

    In YAML and Python a mapping will do."""
    history_thinking: Annotated[Literal["strip", "keep"], Option(model_only=True)] = "strip"
    """whether a reply's reasoning stays in the conversation"""
    action_interface: Annotated[Literal["react", "tools"], Option(model_only=True)] = "react"
    """react: the action is a line of the reply; tools: the model calls its one tool, act(command)"""
    prompts: Annotated[Path | None, Option(by_content=True)] = None
    """folder with a prompt file of your own, FAMILY.yaml, for each family that is played (`evalharness prompts export`
    writes ours)"""
    system: Annotated[str | None, Option("TEXT|FILE", later=True, model_only=True)] = None
    """a system message in place of the prompt files' own: the text, or a file that holds it"""
    shots: Annotated[int | None, Option(later=True, model_only=True)] = Field(default=None, ge=0)
    """worked examples in the prompt: 0 for none, 1 as written, more where a family has more (default: as written)"""
    extra_body: Annotated[str, Option("JSON", later=True, model_only=True)] = ""
    """further fields of every request: '{"reasoning_effort": "low"}'

    In YAML and Python a mapping will do."""
    vllm_args: Annotated[str, Option("ARGS")] = ""
    """passed to vLLM as they are: "--max-model-len 4096\""""

    deterministic: Annotated[bool, Option(later=True)] = False
    """have vLLM compute every reply alike whatever else it computes with it (batch invariance; slower)"""

    output: Annotated[Path | None, Option(short="-o", operational=True)] = None
    """run folder (default: one under results/)"""
    concurrency: Annotated[int | None, Option(operational=True)] = Field(default=None, ge=1)
    """episodes in flight at most (default: found while the run goes on)"""
    replicas: Annotated[int, Option(operational=True)] = Field(default=1, ge=1)
    """vLLM servers started for the model, each on GPUs of its own"""
    workers: Annotated[dict[str, PositiveInt], Option("FAMILY=N", operational=True)] = {}
    """environment processes of a family (default: by cores and measured cost); may be repeated"""
    more_endpoints: Annotated[tuple[str, ...], Option(no_flag=True, operational=True)] = ()
    """further endpoints that serve the same model under the same name; as flags: --model several times"""
    cluster: Annotated[str | None, Option("ADDRESS", operational=True)] = None
    """run the environments on a Ray cluster: ray://host:10001, host:6379, auto (the one this machine belongs to), or
    local (a Ray of our own on this machine)"""
    cluster_install: Annotated[bool, Option(operational=True)] = False
    """have Ray install the simulators' libraries on nodes that lack them"""
    session_header: Annotated[str, Option("NAME", operational=True)] = "X-Session-ID"
    """header that carries the episode, by which a router keeps its requests on one server; "" for none"""
    record_tokens: Annotated[bool, Option(operational=True)] = False
    """keep every token id of prompts and replies, with log probabilities, in tokens.parquet (vLLM)"""
    vllm: Annotated[str | None, Option("PATH", operational=True)] = None
    """the vLLM to start (default: see `evalharness server status`)"""
    api_key_env: Annotated[str | None, Option("VAR", operational=True)] = None
    """environment variable that holds the endpoint's key"""
    timeout: Annotated[float, Option("S", operational=True)] = Field(default=600.0, gt=0, allow_inf_nan=False)
    """seconds for one reply"""
    prices: Annotated[Path | None, Option("FILE", operational=True)] = None
    """what tokens cost, as JSON or YAML: input, output, input_cache_read per million tokens, or these for each model by
    name; summary and table then tell the cost"""
    cost_limit: Annotated[float | None, Option("X", operational=True)] = Field(
        default=None, gt=0, allow_inf_nan=False
    )
    """stop when so much is spent, by --prices; the same command with a higher limit continues"""
    time_limit: Annotated[float | None, Option("S|2h30m", operational=True, text=True)] = Field(
        default=None, gt=0, allow_inf_nan=False
    )
    """stop after so long, from the start of the command on (seconds, or 90m, 2h30m); the same command continues"""
    stop_on_format_errors: Annotated[float | None, Option("SHARE", operational=True)] = Field(
        default=None, ge=0, lt=1
    )
    """stop when more than this share of the replies (0..1), of at least 20, are format errors"""
    label: Annotated[dict[str, str], Option("KEY=VALUE", operational=True)] = {}
    """a note for tables and plots, such as data_size=8000 (`plot --x data_size`); may be repeated"""
    attempts: Annotated[int, Option(operational=True)] = Field(default=3, ge=1)
    """tries of an episode whose infrastructure fails"""

    @model_validator(mode="before")
    @classmethod
    def _whole_addresses(cls, values: Any) -> Any:
        if not isinstance(values, dict):  # of several validators "before", the first runs last
            return values
        whole = dict(values)
        if isinstance(values.get("model"), str):
            whole["model"] = endpoint_url(values["model"])
        if more := values.get("more_endpoints"):
            whole["more_endpoints"] = tuple(
                endpoint_url(url) if isinstance(url, str) else url for url in more
            )
        return whole

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

    @field_validator("chat_template_kwargs", "extra_body", mode="before")
    @classmethod
    def _one_spelling(cls, given: Any) -> Any:
        """The same arguments are the same run, however they are written."""
        try:
            kwargs = json.loads(given) if isinstance(given, str) and given.strip() else given or {}
        except ValueError as error:
            raise ValueError(f"is no JSON ({error})") from None
        if not isinstance(kwargs, dict):
            raise ValueError('is no JSON object such as {"enable_thinking": false}')
        return json.dumps(kwargs, sort_keys=True) if kwargs else ""

    @field_validator("extra_body")
    @classmethod
    def _only_further_fields(cls, text: str) -> str:
        if ours := sorted(json.loads(text or "{}").keys() & _OURS):
            raise ValueError(
                f"{ours[0]!r} is a field that evalharness sets itself"
                + (f" (--{ours[0].replace('_', '-')})" if ours[0] in cls.model_fields else "")
            )
        return text

    @field_validator("tasks", "perturb", mode="before")
    @classmethod
    def _list_as_text(cls, given: Any, info: ValidationInfo) -> Any:
        if isinstance(given, list | tuple):
            given = ("," if info.field_name == "tasks" else "+").join(map(str, given))
        if info.field_name == "tasks" and isinstance(given, str) and given.startswith("@"):
            if not (lines := _lines_of(Path(given[1:]).expanduser())):
                raise ValueError("names no task")
            return ",".join(lines)
        return given

    @field_validator("time_limit", mode="before")
    @classmethod
    def _in_seconds(cls, given: Any) -> Any:
        if not isinstance(given, str) or not re.search(r"[^\d.]", given.strip()):
            return given
        number = r"(\d+(?:\.\d+)?)"
        parts = re.fullmatch(
            rf"(?:{number}\s*h)?\s*(?:{number}\s*m)?\s*(?:{number}\s*s)?", given.strip().lower()
        )
        if parts is None:
            raise ValueError("give seconds, or hours, minutes and seconds such as 2h30m")
        return sum(float(part or 0) * unit for part, unit in zip(parts.groups(), (3600, 60, 1), strict=True))

    @field_validator("label", mode="before")
    @classmethod
    def _numbers_as_text(cls, given: Any) -> Any:
        """`data_size: 8000` in YAML is the label that `--label data_size=8000` is."""
        if not isinstance(given, dict):
            return given
        return {key: str(value) if type(value) in (int, float) else value for key, value in given.items()}

    @field_validator("vllm_args", mode="before")
    @classmethod
    def _words_as_text(cls, given: Any) -> Any:
        return shlex.join(map(str, given)) if isinstance(given, list | tuple) else given

    @field_validator("system", mode="before")
    @classmethod
    def _text_of_a_file(cls, given: Any) -> Any:
        """The text is what results depend on, and not where it lay."""
        if not isinstance(given, str) or "\n" in given or len(given) > 1000:
            return given
        try:
            path = Path(given).expanduser()
            return path.read_text(encoding="utf-8").strip() if path.is_file() else given
        except (OSError, ValueError) as error:
            raise ValueError(f"cannot be read: {error}") from None

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
        if (self.lora or self.lora_serve) and (self.is_endpoint or self.is_scripted):
            raise ValueError(
                "--lora is for a vLLM that evalharness starts; an endpoint serves an adapter under a name of its own, "
                "which is then the --model-name"
            )
        if self.deterministic and (self.is_endpoint or self.is_scripted):
            raise ValueError(
                "--deterministic is for a vLLM that evalharness starts; start your own with VLLM_BATCH_INVARIANT=1"
            )
        if self.cost_limit is not None and self.prices is None:
            raise ValueError("--cost-limit needs --prices FILE, which says what tokens cost")
        if self.replicas > 1 and (self.is_endpoint or self.is_scripted):
            raise ValueError(
                "--replicas is for a vLLM that evalharness starts; give --model several times for endpoints"
            )
        return self

    @model_validator(mode="after")
    def _what_a_model_is_given_fits_it(self) -> RunConfig:
        if self.acts_by_tools and self.is_scripted:
            raise ValueError(f"--action-interface tools: {self.model} is no model and calls no tools")
        if self.chat_template is not None and self.is_endpoint:
            raise ValueError(
                "--chat-template is for a vLLM that evalharness starts; start the endpoint's server with it: "
                f"vllm serve ... --chat-template {self.chat_template}"
            )
        if self.chat_template is not None and self.cluster is not None:
            raise ValueError(
                "--chat-template cannot be given with --cluster: its nodes may not have the file"
            )
        return self

    @field_validator("output", mode="before")
    @classmethod
    def _names_a_folder(cls, folder: Any) -> Any:
        # `Path("")` would be the current folder, as after `-o "$OUT"` with OUT unset.
        if isinstance(folder, str) and (not folder.strip() or "\0" in folder):
            raise ValueError("no name of a folder")
        return folder

    @field_validator("suite")
    @classmethod
    def _known_suite(cls, name: str) -> str:
        from envs import specs
        from evalharness.suites.selection import suites_of

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

    @field_validator("session_header")
    @classmethod
    def _names_a_header(cls, name: str) -> str:
        if name and not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
            raise ValueError("no name of an HTTP header")
        return name

    @field_validator("perturb")
    @classmethod
    def _normal_perturb(cls, name: str | None) -> str | None:
        from evalharness.protocol.perturb import normal_name

        return None if name is None else normal_name(name)

    @property
    def acts_by_tools(self) -> bool:
        return self.action_interface == "tools"

    @property
    def adaptation(self) -> Adaptation:
        """What the run changes about the prompt files; a script reads no prompt."""
        return Adaptation() if self.is_scripted else Adaptation(self.system, self.shots)

    @property
    def extra_fields(self) -> dict[str, Any]:
        """What every request has beside our own fields."""
        found: dict[str, Any] = json.loads(self.extra_body or "{}")
        return found

    @property
    def template_kwargs(self) -> dict[str, Any]:
        """What a request hands to the chat template."""
        found: dict[str, Any] = json.loads(self.chat_template_kwargs or "{}")
        return found

    def sampling_fields(self) -> dict[str, Any]:
        """How replies are drawn, token limit and seed aside; None: left to the model's own recommendation."""
        left_open = set(SAMPLING) - self.model_fields_set if self.sampling == "model" else set()
        return {name: None if name in left_open else getattr(self, name) for name in SAMPLING}

    def identity(self) -> dict[str, Any]:
        """The part of the configuration that results depend on, as JSON data."""
        options = {name: option_of(field) for name, field in type(self).model_fields.items()}
        elsewhere = {
            name
            for name, option in options.items()
            if option.operational or option.by_content or (option.model_only and self.is_scripted)
        }
        data: dict[str, Any] = self.model_dump(mode="json", exclude=elsewhere)
        data["max_turns"] = self.max_turns or MAX_TURNS  # less is in the manifest's `turn_limits`
        if self.questions is None:
            del data["questions"]
        if not self.is_scripted:
            data |= self.sampling_fields()
        for name, field in type(self).model_fields.items():
            if option_of(field).later and getattr(self, name) == field.get_default(call_default_factory=True):
                data.pop(name, None)
        if self.is_endpoint:
            # A server that comes back on another port is the same model: what it says of itself counts (served.py).
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
        if self.model_name or self.is_endpoint:
            return self.model_name or self.model
        base = Path(self.model).name or self.model
        return f"{base}:{self.lora.name}" if self.lora else base

    def folder(self, address: str | None = None) -> Path:
        """Where the run goes: the same options give the same folder, so the same command continues.

        `address` as in `policy.opened.Prepared`: an endpoint's URL, only where nothing else tells models apart.
        """
        if self.output is not None:
            return self.output
        name = folder_name(self.display_name, "model")
        endpoint = address if self.is_endpoint else self.model
        # A limit of 30 that was asked for is another one than none where a family has less of its own.
        asked = {"asked_turns": MAX_TURNS} if self.max_turns == MAX_TURNS else {}
        key = json.dumps({**self.identity(), "endpoint": endpoint, **asked}, sort_keys=True)
        if self.perturb is not None:
            name += "-" + re.sub(r"[^A-Za-z0-9+_-]+", "-", self.perturb)[:40]
        return Path("results") / f"{name}-{self.suite}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def _lines_of(path: Path) -> list[str]:
    """Of a list of tasks: without empty lines, and without what follows a `#`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    lines = [line.partition("#")[0].strip().strip(",") for line in text.splitlines()]
    return [line for line in lines if line]


def endpoint_url(model: str) -> str:
    """`http://host:8000` and `http://host:8000/v1/chat/completions` as http://host:8000/v1, which a line says; what is
    no URL, or has another path, as it is."""
    if not model.startswith(("http://", "https://")):
        return model
    whole = re.sub(r"/(?:chat/completions|completions|models)/*$", "", model)
    if re.fullmatch(r"https?://[^/?#]+/*", whole):
        whole = whole.rstrip("/") + "/v1"
    if whole != model:
        logging.getLogger("evalharness").info("--model %s is read as %s", model, whole)
    return whole


def _explain(error: ValidationError, source: str) -> str:
    lines = []
    for problem in error.errors():
        if not problem["loc"]:
            lines.append(f"{source}{problem['msg'].removeprefix('Value error, ')}")
            continue
        name = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            lines.append(f"{source}no such option {name!r}{nearest(name, sorted(RunConfig.model_fields))}")
            continue
        flag = "--" + name.replace("_", "-")
        given = problem.get("input")
        why = problem["msg"].removeprefix("Value error, ")
        lines.append(f"{source}{flag} {given}: {why[0].lower()}{why[1:]}")
    return "; ".join(lines)


def read_sampling(path: Path) -> dict[str, Any]:
    """What a file says of how replies are drawn; a checkpoint's `generation_config.json` is such a file."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"--sampling {path}: no such file; give a file of values, or model") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"--sampling {path} is not readable: {syntax_problem(error)}") from None
    stated = data if isinstance(data, dict) else {}
    found = {name: stated[name] for name in SAMPLING if stated.get(name) is not None}
    if not found:
        raise UserError(f"--sampling {path} names none of {', '.join(SAMPLING)}")
    # A generation_config.json holds much else, of which nothing is sampling.
    if "transformers_version" not in stated and (unknown := sorted(map(str, stated.keys() - set(SAMPLING)))):
        raise UserError(f"--sampling {path} names {unknown[0]!r}, which is none of {', '.join(SAMPLING)}")
    return found


def make_config(
    flags: dict[str, Any], config_file: Path | None = None, defaults: Mapping[str, Any] | None = None
) -> RunConfig:
    """Flags over file over `defaults` over those of the fields. Raises UserError naming the option that is wrong."""
    values = {**(defaults or {}), **(read_config(config_file) if config_file else {})}
    values |= {key: value for key, value in flags.items() if value is not None}
    if "model" not in values:
        raise UserError(
            "no model: give --model DIR, --model http://host:port/v1, --model demo or --model oracle"
            + openai_hint()
        )
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        raise UserError(_explain(error, "")) from None
