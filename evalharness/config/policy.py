"""Options for the policy: the model, its server, and the sampling of its replies."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from evalharness.base.redaction import know, know_words, redact
from evalharness.config.option import ConfigPart, Option
from evalharness.config.values import SAMPLING, endpoint_url, read_sampling

SCRIPTED = ("oracle", "random", "reference")
HUMAN = "human:"
"""Prefix of a person's name: `evalharness run --model human:NAME`."""
EXTERNAL = "external:"
"""Prefix of the user's name for an external agent (`--agent external`)."""


def is_scripted(model: str) -> bool:
    """Return whether a script, a replay, a person or an external agent gives the replies, instead of a model server."""
    return model in SCRIPTED or model.startswith(("replay:", HUMAN, EXTERNAL))


_HEADER_NAME = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_OWN_HEADERS = ("host", "content-length", "content-type", "transfer-encoding", "connection")
_OURS = frozenset(
    {
        *SAMPLING,
        *("model", "messages", "max_tokens", "max_completion_tokens", "stop", "seed", "n", "stream", "tools"),
        *("tool_choice", "response_format", "chat_template_kwargs"),
    }
)
"""Fields of a request that the user cannot set by `extra_body`: evalharness or another option sets them."""


def display_name(model: str, model_name: str | None, lora: Path | str | None) -> str:
    """Return a model's name in tables, from the options that name it."""
    base = model_name or Path(model).name or model
    return f"{base}:{Path(lora).name}" if lora and not model_name else base


class PolicyConfig(ConfigPart):
    model: Annotated[str, Option("MODEL", repeated=True)]
    """a checkpoint directory or hub id (evalharness starts a vLLM for it), http://host:port/v1 (any OpenAI-compatible
    server; give the option several times for several servers of one model), demo (a small model that acts), demo-base
    (the same before training), oracle, random, replay:RUN, or human:NAME (you play by hand; human:NAME+list also shows
    the valid actions)

    If several endpoints are given (in YAML as a list), `model` is the first; `more_endpoints` has the rest."""
    more_endpoints: Annotated[tuple[str, ...], Option(no_flag=True, operational=True)] = ()
    """further endpoints that serve the same model under the same name (on the command line: --model several times)"""
    model_name: Annotated[str | None, Option("NAME")] = None
    """the model's name at the endpoint and in tables; required if the endpoint serves several models"""
    lora: Annotated[Path | None, Option(later=True)] = None
    """a LoRA adapter of the model; it is merged once, and the merged model is kept"""
    lora_serve: Annotated[bool, Option(later=True)] = False
    """serve the LoRA adapter with vLLM, without merging"""
    temperature: Annotated[float, Option("T")] = Field(default=0.0, ge=0, allow_inf_nan=False)
    """sampling temperature; 0 is greedy"""
    top_p: Annotated[float, Option(no_flag=True)] = Field(default=1.0, gt=0, le=1)
    """nucleus sampling: use the fewest most likely tokens whose probabilities sum to at least this value"""
    top_k: Annotated[int, Option(no_flag=True, model_only=True)] = Field(default=-1, ge=-1)
    """sample from this many of the most likely tokens; -1: from all tokens"""
    min_p: Annotated[float, Option(no_flag=True, model_only=True)] = Field(default=0.0, ge=0, le=1)
    """sample from tokens at least P times as likely as the most likely one"""
    presence_penalty: Annotated[float, Option(no_flag=True, model_only=True)] = Field(
        default=0.0, ge=-2, le=2
    )
    """penalty for tokens that the reply already contains; 0: no penalty"""
    frequency_penalty: Annotated[float, Option(no_flag=True, model_only=True)] = Field(
        default=0.0, ge=-2, le=2
    )
    """penalty for each earlier occurrence of the token in the reply; 0: no penalty"""
    repetition_penalty: Annotated[float, Option(no_flag=True, model_only=True)] = Field(
        default=1.0, gt=0, allow_inf_nan=False
    )
    """penalty for tokens that the prompt or the reply already contains; 1: no penalty"""
    sampling: Annotated[str | None, Option("FILE|model", model_only=True)] = None
    """read sampling options from a JSON or YAML file, or from the checkpoint (model); other flags override them"""
    max_tokens: int = Field(default=256, ge=1)
    """maximum number of tokens of one reply, including reasoning"""
    seed: int = Field(default=0, ge=0)
    """seed of sampling and of random choices, not of tasks"""
    chat_template: Annotated[Path | None, Option("FILE", by_content=True)] = None
    """a chat template (Jinja) that replaces the checkpoint's own, for the vLLM that evalharness starts"""
    chat_template_kwargs: Annotated[str, Option("JSON", model_only=True)] = ""
    """arguments of the chat template: '{"enable_thinking": false}'

    YAML and Python also accept a mapping."""
    extra_body: Annotated[str, Option(no_flag=True, later=True, model_only=True)] = ""
    """additional fields of every request: {reasoning_effort: low}"""
    vllm: Annotated[str | None, Option("PATH", operational=True)] = None
    """the vLLM to start (default: see `evalharness server status`)"""
    vllm_args: Annotated[str, Option("ARGS")] = ""
    """command-line arguments of vLLM: "--max-model-len 4096\""""
    deterministic: Annotated[bool, Option(later=True)] = False
    """make replies independent of the other requests that vLLM computes (batch invariance; slower)"""
    replicas: Annotated[int, Option(operational=True)] = Field(default=1, ge=1)
    """number of vLLM servers for the model, each on its own GPUs"""
    concurrency: Annotated[int | None, Option(operational=True)] = Field(default=None, ge=1)
    """maximum number of requests in flight (default: 512 for each server, less if the server refuses)"""
    session_header: Annotated[str, Option(no_flag=True, operational=True)] = "X-Session-ID"
    """header with the episode's key, so that a router keeps an episode on one server; "" for no header"""
    api_key_env: Annotated[str | None, Option("VAR", operational=True)] = None
    """environment variable with the endpoint's key"""
    header: Annotated[tuple[str, ...], Option("'NAME: VALUE'", operational=True)] = ()
    """a header of every request to the endpoint, such as 'api-key: KEY'; its value is never stored; may be repeated"""
    timeout: Annotated[float, Option("S", operational=True)] = Field(default=600.0, gt=0, allow_inf_nan=False)
    """maximum seconds for one reply"""

    @model_validator(mode="before")
    @classmethod
    def _split_endpoints(cls, values: Any) -> Any:
        """Use the first of several models as `model` and the rest as `more_endpoints`; complete the URLs."""
        if not isinstance(values, dict):
            return values
        whole = dict(values)
        for name in ("model", "more_endpoints", "vllm_args", "extra_body"):
            text = values.get(name)
            know_words(" ".join(map(str, text)) if isinstance(text, list | tuple) else str(text))
        if isinstance(values.get("model"), list):
            whole["model"], *more = values["model"] or [None]
            whole["more_endpoints"] = (*values.get("more_endpoints", ()), *more)
        if isinstance(whole.get("model"), str):
            whole["model"] = endpoint_url(whole["model"])
        if more := whole.get("more_endpoints"):
            whole["more_endpoints"] = tuple(
                endpoint_url(url) if isinstance(url, str) else url for url in more
            )
        return whole

    @model_validator(mode="before")
    @classmethod
    def _read_sampling_file(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("sampling") in (None, "model"):
            return values
        stated = read_sampling(Path(str(values["sampling"])))
        return {**stated, **values, "sampling": None}

    @field_validator("chat_template_kwargs", "extra_body", mode="before")
    @classmethod
    def _normalise_json(cls, given: Any) -> Any:
        """Normalise the JSON: different spellings of the same arguments are the same run."""
        try:
            kwargs = json.loads(given) if isinstance(given, str) and given.strip() else given or {}
        except ValueError as error:
            raise ValueError(f"is not JSON ({error})") from None
        if not isinstance(kwargs, dict):
            raise ValueError('is not a JSON object such as {"enable_thinking": false}')
        return json.dumps(kwargs, sort_keys=True) if kwargs else ""

    @field_validator("extra_body")
    @classmethod
    def _refuse_known_fields(cls, text: str) -> str:
        if ours := sorted(json.loads(text or "{}").keys() & _OURS):
            raise ValueError(
                f"{ours[0]!r} is a field that evalharness sets itself"
                + (f" (--{ours[0].replace('_', '-')})" if ours[0] in cls.model_fields else "")
            )
        return text

    @field_validator("vllm_args", mode="before")
    @classmethod
    def _join_arguments(cls, given: Any) -> Any:
        return shlex.join(map(str, given)) if isinstance(given, list | tuple) else given

    @field_validator("top_k")
    @classmethod
    def _replace_zero(cls, top_k: int) -> int:
        return top_k or -1

    @field_validator("header", mode="before")
    @classmethod
    def _check_headers(cls, given: Any) -> Any:
        lines = [given] if isinstance(given, str) else given
        for line in lines if isinstance(lines, list | tuple) else ():
            know(str(line))  # register it as a secret before the checks: their messages must hide it
            name, colon, value = str(line).partition(":")
            if (
                not colon
                or not re.fullmatch(_HEADER_NAME, name.strip())
                or not re.fullmatch(r"[ -~]+", value)
            ):
                raise ValueError("is not a header 'NAME: VALUE' of printable ASCII characters")
            if name.strip().lower() in _OWN_HEADERS:
                raise ValueError(f"{name.strip()} is a header that evalharness sets itself")
            know(value.strip())
            know(value.split()[-1] if value.split() else None)  # the key in `Bearer KEY`
        return lines

    @field_validator("session_header")
    @classmethod
    def _check_header_name(cls, name: str) -> str:
        if name and not re.fullmatch(_HEADER_NAME, name):
            raise ValueError("not the name of an HTTP header")
        return name

    @model_validator(mode="after")
    def _check_conflicts(self) -> PolicyConfig:
        if self.more_endpoints:
            for model in (self.model, *self.more_endpoints):
                if not model.startswith(("http://", "https://")):
                    raise ValueError(
                        f"{model} is not an endpoint: --model may be given several times only for endpoints "
                        "(http://host:port/v1); for several servers of one checkpoint use --replicas"
                    )
        if (self.lora or self.lora_serve) and not self.is_ours:
            raise ValueError(
                "--lora is for a vLLM that evalharness starts; an endpoint serves an adapter under a name of its own, "
                "which is then the --model-name"
            )
        if self.deterministic and not self.is_ours:
            raise ValueError(
                "--deterministic is for a vLLM that evalharness starts; start your own with VLLM_BATCH_INVARIANT=1"
            )
        if self.api_key_env and any("@" in url.split("/")[2] for url in self.endpoints):
            raise ValueError(
                "the endpoint's URL contains a name and password, and --api-key-env gives a key: use only one of them"
            )
        if self.replicas > 1 and not self.is_ours:
            raise ValueError(
                "--replicas is for a vLLM that evalharness starts; give --model several times for endpoints"
            )
        if self.chat_template is not None and self.is_endpoint:
            raise ValueError(
                "--chat-template is for a vLLM that evalharness starts; start the endpoint's server with it: "
                f"vllm serve ... --chat-template {self.chat_template}"
            )
        return self

    @property
    def is_endpoint(self) -> bool:
        return self.model.startswith(("http://", "https://"))

    @property
    def is_scripted(self) -> bool:
        """Whether a script, a replay, a person or an external agent gives the replies."""
        return is_scripted(self.model)

    @property
    def is_external(self) -> bool:
        """Whether an external agent acts. The harness does not know its model."""
        return self.model.startswith(EXTERNAL)

    @property
    def is_ours(self) -> bool:
        """Whether the harness starts a vLLM for the model."""
        return not self.is_endpoint and not self.is_scripted

    @property
    def endpoints(self) -> tuple[str, ...]:
        return (self.model, *self.more_endpoints) if self.is_endpoint else ()

    @property
    def display_name(self) -> str:
        if self.is_endpoint and not self.model_name:
            return redact(self.model)
        return display_name(self.model, self.model_name, self.lora)

    @property
    def headers(self) -> dict[str, str]:
        """The user's headers of every request."""
        return {
            name.strip(): value.strip() for name, _, value in (line.partition(":") for line in self.header)
        }

    @property
    def extra_fields(self) -> dict[str, Any]:
        """The user's additional fields of every request."""
        fields: dict[str, Any] = json.loads(self.extra_body or "{}")
        return fields

    @property
    def template_kwargs(self) -> dict[str, Any]:
        """The arguments of the chat template."""
        fields: dict[str, Any] = json.loads(self.chat_template_kwargs or "{}")
        return fields

    def sampling_fields(self) -> dict[str, Any]:
        """Return the sampling options. None: use the value that the model's generation_config.json recommends."""
        unset = set(SAMPLING) - self.model_fields_set if self.sampling == "model" else set()
        return {name: None if name in unset else getattr(self, name) for name in SAMPLING}
