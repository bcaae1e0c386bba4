"""JSON in what a model replied: with or without a fence, prose or thinking around it, whole or broken. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from evalharness.base.reading import no_constant, parse_json
from evalharness.protocol.reasoning import split_known

LONGEST_REPLY = 200_000
"""Characters. A trajectory of forty long turns has about 30,000."""
DEEPEST = 40
"""Brackets within brackets. A place in a place in a place needs a dozen."""

_FENCE = re.compile(r"^\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)
_OPENING = re.compile(r'\{\s*["}]|\[\s*[{\]]')
"""Where an object, or a list of objects, begins: a bracket in prose does not."""
_LIST = re.compile(r"\[\s*(?=\{)")
_BETWEEN = re.compile(r"[\s,]*")


class NotJsonError(ValueError):
    """The reply is not JSON; the message says where it breaks."""


@dataclass(frozen=True)
class BrokenList:
    """A JSON list that was cut off: the objects that are complete, and the parse error."""

    whole: tuple[dict[str, Any], ...]
    why: str


_DECODER = json.JSONDecoder(parse_constant=no_constant)


def _content(text: str) -> str:
    """Without a thinking block before it and a code fence around it."""
    text = text.lstrip("\ufeff")
    if not text.lstrip().startswith(("{", "[", "`")):
        text = split_known(text)[1]
    fenced = _FENCE.match(text)
    return fenced[1] if fenced else text


def read_json(text: str) -> Any:
    """The value in a reply: all of it, or from its first bracket on where prose stands before or after.

    Raises NotJsonError.
    """
    if len(text) > LONGEST_REPLY:
        raise NotJsonError(f"it is longer than {LONGEST_REPLY:,} characters")
    content = _content(text)
    opening = _OPENING.search(content)
    if opening is None:
        raise NotJsonError(
            "it holds no JSON object and no list of objects" if content.strip() else "it is empty"
        )
    try:
        return _value_at(content, opening.start())[0]
    except ValueError as error:
        raise NotJsonError(_where(error, content)) from None


def _value_at(content: str, start: int) -> tuple[Any, int]:
    """The value that begins at `start`, and where it ends. Raises ValueError."""
    try:
        _, end = _DECODER.raw_decode(content, start)
    except RecursionError:
        raise ValueError("nested too deep") from None
    return parse_json(content[start:end], DEEPEST), end


def _where(error: ValueError, content: str) -> str:
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    if error.pos >= len(content.rstrip()) or error.msg.startswith("Unterminated string"):
        return f"it breaks off ({error.msg}) at line {error.lineno}, column {error.colno}"
    return f"{error.msg} at line {error.lineno}, column {error.colno}"


def whole_objects(text: str) -> list[dict[str, Any]]:
    """The objects of the first list of objects in `text`, up to where it breaks."""
    content = _content(text[:LONGEST_REPLY])
    opening = _LIST.search(content)
    found: list[dict[str, Any]] = []
    at = opening.end() if opening else len(content)
    while at < len(content) and content[at] == "{":
        try:
            value, at = _value_at(content, at)
        except ValueError:
            break
        found.append(value)
        between = _BETWEEN.match(content, at)
        at = between.end() if between else at
    return found


def read_list(text: str, key: str) -> list[Any] | BrokenList:
    """A reply that should be a list, bare or under `key` (or under whatever single key)."""
    try:
        value = read_json(text)
    except NotJsonError as error:
        return BrokenList(tuple(whole_objects(text)), str(error))
    if isinstance(value, dict):
        listed = value.get(key, next(iter(value.values())) if len(value) == 1 else None)
        if isinstance(listed, list):
            return listed
        return BrokenList((), f"it is an object without a list {key!r}")
    return value if isinstance(value, list) else BrokenList((), "it is no list")
