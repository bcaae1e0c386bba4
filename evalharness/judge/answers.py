"""Read a verdict from a judge's reply. An ambiguous or broken reply gives no verdict, but a reason."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from evalharness.base.reading import no_constant
from evalharness.judge.verdict import KINDS, Verdict, replace_surrogates
from evalharness.models.many_requests import Answer, Refusal
from evalharness.protocol.reasoning import closes_reasoning, split_known

Value = TypeVar("Value")
_LONGEST = 100_000
"""Number of characters of a reply that are parsed; later ones are ignored."""
_SENTENCE = 300
"""Maximum number of characters of the judge's reason. A server that enforces the schema ends the reason there, so the
reply is complete."""

_REFUSED: dict[Refusal, str] = {
    "context": "too long for the judge's context",
    "refused": "the judge's server refused the question",
}

_BRACE = re.compile(r"[{}]")
_BROKEN = re.compile(r"\{\s*[\"']")
"""The beginning of a JSON object. If an object that begins like this cannot be parsed, the reply is unusable."""


def response_format(name: str, properties: dict[str, Any]) -> dict[str, Any]:
    """Return the `response_format` of the chat completions API: a JSON schema in which all properties are required."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}


REASON = {"type": "string", "maxLength": _SENTENCE}
VERDICT_FORMAT = response_format(
    "verdict", {"reason": REASON, "verdict": {"enum": ["right", "wrong"]}, "kind": {"enum": [*KINDS, "none"]}}
)


class UnusableReplyError(ValueError):
    """The reply does not have the requested form; the message says what is missing."""


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Raise ValueError for a repeated key: of two verdicts in one object, Python's parser would take the last."""
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


_DECODER = json.JSONDecoder(parse_constant=no_constant, object_pairs_hook=_each_key_once)


def strip_reasoning(text: str) -> str:
    """Return the text after the model's reasoning. A reply that begins with a brace has no reasoning, only JSON.

    Raises UnusableReplyError if the reasoning has no end.
    """
    text = text.strip()
    if not text.startswith("{"):
        reasoning, answer = split_known(text)
        if reasoning and not answer.strip() and not closes_reasoning(text):
            raise UnusableReplyError("the thinking has no end")
        text = answer.lstrip()
    return text[:_LONGEST]


def _end_of_braces(text: str, at: int) -> int:
    """Return the position after the brace that closes the one at `at`, to skip braces that are no JSON. Raises
    UnusableReplyError if they look like a broken JSON object, since an inner object could be quoted text.
    """
    depth = 0
    if not _BROKEN.match(text, at):
        for brace in _BRACE.finditer(text, at):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                return brace.end()
    raise UnusableReplyError("a broken JSON object")


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in `text`, and skip the text between them.

    Raises UnusableReplyError if an object is broken.
    """
    at = text.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = _end_of_braces(text, at)
        else:
            if isinstance(value, dict):
                yield value
        at = text.find("{", end)


def read(answer: Answer, from_text: Callable[[str], Value]) -> Value:
    """Apply `from_text` to the text after the reasoning. Raises UnusableReplyError if the server refused the question,
    the token limit cut off the reply, or `from_text` raised it."""
    if answer.refusal is not None:
        raise UnusableReplyError(_REFUSED[answer.refusal])
    try:
        return from_text(strip_reasoning(answer.reply))
    except UnusableReplyError:
        if answer.finish_reason == "length":
            raise UnusableReplyError("cut off by the token limit") from None
        raise


def read_object(text: str, key: str) -> dict[str, Any]:
    """Return the object that has `key`. Raises UnusableReplyError if there is none, or if the values of several
    differ."""
    matches = [value for value in objects(text) if key in value]
    if not matches:
        raise UnusableReplyError(_without(text, key))
    if any(value[key] != matches[0][key] for value in matches):
        raise UnusableReplyError(f"several answers that differ in {key!r}")
    return matches[-1]


def _without(text: str, key: str) -> str:
    if not text.strip():
        return "the reply is empty"
    if "{" not in text:
        return "prose without JSON"
    return f"no JSON object with {key!r}"


def sentence(value: Any) -> str:
    """Return a judge's reason as one line of at most 300 characters. If `value` is not text, return an empty line."""
    return (
        re.sub(r"\s+", " ", replace_surrogates(value)).strip()[:_SENTENCE] if isinstance(value, str) else ""
    )


def read_verdict(answer: Answer) -> Verdict:
    """Read a verdict. If the reply has no readable verdict, the note of the returned Verdict says why."""
    try:
        value = read(answer, lambda text: read_object(text, "verdict"))
    except UnusableReplyError as error:
        return Verdict(None, None, str(error))
    word = value["verdict"].strip().casefold() if isinstance(value["verdict"], str) else None
    if word not in ("right", "wrong"):
        return Verdict(None, None, "the verdict is neither right nor wrong")
    kind = value.get("kind") if word == "wrong" else None
    return Verdict(word == "wrong", kind if kind in KINDS else None, sentence(value.get("reason")))
