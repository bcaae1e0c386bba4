"""The options of a run: their types, defaults, help, and what each of them accepts."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from evalharness.config.option import Option
from evalharness.config.values import SAMPLING, endpoint_url, lines_of, read_sampling
from evalharness.errors import nearest

_OURS = frozenset(
    {
        *SAMPLING,
        *("model", "messages", "max_tokens", "max_completion_tokens", "stop", "seed", "n", "stream", "tools"),
        *("tool_choice", "response_format", "chat_template_kwargs", "return_token_ids", "logprobs"),
    }
)
"""Fields of a request that options say, or that the harness needs as they are."""


class RunOptions(BaseModel):
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
            if not (lines := lines_of(Path(given[1:]).expanduser())):
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
