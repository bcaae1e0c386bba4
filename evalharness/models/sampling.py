"""How a request asks for its reply to be drawn, and which parts of that a server may be spared. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Sampling:
    """How replies are drawn. Greedy by default, as the published main results.

    A request says all of it, neutral values too: what it leaves open, vLLM fills in from the checkpoint's
    `generation_config.json`, and a "greedy" run with a repetition penalty of 1.05 is none. None: left to the server.
    """

    temperature: float | None = 0.0
    top_p: float | None = 1.0
    max_tokens: int = 256
    """Per reply, reasoning included: room for a thought and an action."""
    seed: int = 0
    top_k: int | None = -1
    min_p: float | None = 0.0
    presence_penalty: float | None = 0.0
    frequency_penalty: float | None = 0.0
    repetition_penalty: float | None = 1.0

    def fields(self) -> dict[str, Any]:
        """Of a request, all but its token limit and its seed, which differ from request to request."""
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
"""The value at which a field changes nothing. For `top_k` vLLM, SGLang and llama.cpp agree on -1 alone."""
_BEYOND_OPENAI = frozenset({"top_k", "min_p", "repetition_penalty"})
"""Not in OpenAI's own interface, which refuses what it does not know."""


def may_be_left_out(field: str, value: Any) -> bool:
    """Whether a request without this field asks for the same, as far as anybody can tell from outside. A seed only
    makes sampled replies repeatable; a server that takes none still answers what it was asked. Without a stop sequence
    the model continues by inventing observations; the parser cuts the reply at the point where the stop sequence would
    have cut it."""
    return field in ("seed", "stop", "stream_options") or (field in _NEUTRAL and value == _NEUTRAL[field])


def refused_fields(message: str, request: dict[str, Any]) -> set[str]:
    """Which fields of `request` a refusal names, of those that may be left out."""
    words = set(re.findall(r"\w+", message))
    if not re.search(r"""["'`]stop["'`]""", message):
        words.discard("stop")  # a word that messages have for other reasons
    return {name for name, value in request.items() if name in words and may_be_left_out(name, value)}


def wants_other_limit(message: str) -> bool:
    """Whether a refusal asks for `max_completion_tokens` in place of `max_tokens`, as OpenAI's newer models do."""
    return {"max_tokens", "max_completion_tokens"} <= set(re.findall(r"\w+", message))


def wants_stream(message: str) -> bool:
    """Whether a refusal may be for a server that only streams."""
    return "stream" in message.lower()


def remedy(message: str, request: dict[str, Any]) -> str:
    """What a person can do about a refusal that names a way of sampling; begins with "; "."""
    words = set(re.findall(r"\w+", message))
    named = [
        name
        for name in _NEUTRAL
        if name in words and name in request and not may_be_left_out(name, request[name])
    ]
    if not named:
        return ""
    flags = " ".join(f"--{name.replace('_', '-')} {_NEUTRAL[name]:g}" for name in named)
    return f"; with {flags} nothing is asked for, and the field is left out where the server refuses it"


def beyond_openai(request: dict[str, Any]) -> set[str]:
    """Fields that a server may refuse without naming them, of those that may be left out."""
    return {name for name in _BEYOND_OPENAI & request.keys() if may_be_left_out(name, request[name])}


def without(request: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name not in names}
