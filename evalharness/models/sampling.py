"""The sampling fields of a request, and which of them may be omitted if a server refuses them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Sampling:
    """The sampling fields of a request; None omits a field. The default is greedy, like the published main results.

    A request contains all fields, even neutral ones: vLLM takes an omitted field from the checkpoint's
    `generation_config.json`, and with a repetition penalty of 1.05 from there the run would not be greedy.
    """

    temperature: float | None = 0.0
    top_p: float | None = 1.0
    max_tokens: int = 256
    """Limit for each reply, including reasoning: enough for a thought and an action."""
    seed: int = 0
    top_k: int | None = -1
    min_p: float | None = 0.0
    presence_penalty: float | None = 0.0
    frequency_penalty: float | None = 0.0
    repetition_penalty: float | None = 1.0

    def fields(self) -> dict[str, Any]:
        """Return the fields of a request, except the token limit and the seed, which differ between requests."""
        stated = asdict(self)
        return {name: stated[name] for name in _NEUTRAL if stated[name] is not None}


_NEUTRAL: dict[str, float] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
}
"""Field -> value without an effect. For `top_k`, only -1 has no effect in all of vLLM, SGLang and llama.cpp."""
_BEYOND_OPENAI = frozenset({"top_k", "min_p", "repetition_penalty"})
"""Fields outside OpenAI's own interface, which refuses unknown fields."""


def may_be_left_out(field: str, value: Any) -> bool:
    """Return whether a request without this field gives an equivalent reply. The seed only makes a reply repeatable.
    Without stop sequences the reply is longer, but the parser cuts it at the same place."""
    return field in ("seed", "stop", "stream_options") or (field in _NEUTRAL and value == _NEUTRAL[field])


def refused_fields(message: str, request: dict[str, Any]) -> set[str]:
    """Return the fields of `request` that a refusal names and that may be omitted."""
    words = set(re.findall(r"\w+", message))
    if not re.search(r"""["'`]stop["'`]""", message):
        words.discard("stop")  # without quotes, "stop" can be an ordinary verb
    return {name for name, value in request.items() if name in words and may_be_left_out(name, value)}


def wants_other_limit(message: str) -> bool:
    """Return whether a refusal asks for `max_completion_tokens` instead of `max_tokens` (OpenAI's newer models)."""
    return {"max_tokens", "max_completion_tokens"} <= set(re.findall(r"\w+", message))


def wants_stream(message: str) -> bool:
    """Return whether a refusal may come from a server that only streams."""
    return "stream" in message.lower()


def remedy(message: str, request: dict[str, Any]) -> str:
    """Return advice for a refusal that names a sampling field; it begins with "; "."""
    words = set(re.findall(r"\w+", message))
    named = [
        name
        for name in _NEUTRAL
        if name in words and name in request and not may_be_left_out(name, request[name])
    ]
    if not named:
        return ""
    flags = " ".join(f"--{name.replace('_', '-')} {_NEUTRAL[name]:g}" for name in named)
    return f"; with {flags} the field has no effect, and is omitted if the server refuses it"


def optional_extensions(request: dict[str, Any]) -> set[str]:
    """Return the fields that may be omitted and that a server may refuse without naming them."""
    return {name for name in _BEYOND_OPENAI & request.keys() if may_be_left_out(name, request[name])}


def without(request: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name not in names}
