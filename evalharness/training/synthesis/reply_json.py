"""Read JSON from a model's reply, which may also contain a code fence, prose or thinking, and may be cut off."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from evalharness.base.reading import no_constant, parse_json
from evalharness.protocol.reasoning import split_known

LONGEST_REPLY = 200_000
"""Maximum number of characters of a reply. A trajectory of forty long turns has about 30,000 characters."""
DEEPEST = 40
"""Maximum number of levels of nested brackets. A script with places in three levels needs about twelve."""

_FENCE = re.compile(r"^\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)
_OPENING = re.compile(r'\{\s*["}]|\[\s*[{\]]')
"""The beginning of an object or of a list of objects; a bracket in prose does not match."""
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


def _strip_fence(text: str) -> str:
    """Return the text without a leading thinking block and without a surrounding code fence."""
    text = text.lstrip("\ufeff")
    if not text.lstrip().startswith(("{", "[", "`")):
        text = split_known(text)[1]
    fenced = _FENCE.match(text)
    return fenced[1] if fenced else text


def read_json(text: str) -> Any:
    """Return the JSON value in a reply; prose before and after the value is ignored. Raises NotJsonError."""
    if len(text) > LONGEST_REPLY:
        raise NotJsonError(f"it is longer than {LONGEST_REPLY:,} characters")
    content = _strip_fence(text)
    opening = _OPENING.search(content)
    if opening is None:
        raise NotJsonError(
            "it holds no JSON object and no list of objects" if content.strip() else "it is empty"
        )
    try:
        return _read_value(content, opening.start())[0]
    except ValueError as error:
        raise NotJsonError(_describe_position(error, content)) from None


def _read_value(content: str, start: int) -> tuple[Any, int]:
    """Return the JSON value that begins at `start`, and the value's end position. Raises ValueError."""
    try:
        _, end = _DECODER.raw_decode(content, start)
    except RecursionError:
        raise ValueError("nested too deep") from None
    return parse_json(content[start:end], DEEPEST), end


def _describe_position(error: ValueError, content: str) -> str:
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    if error.pos >= len(content.rstrip()) or error.msg.startswith("Unterminated string"):
        return f"it breaks off ({error.msg}) at line {error.lineno}, column {error.colno}"
    return f"{error.msg} at line {error.lineno}, column {error.colno}"


def read_whole_objects(text: str) -> list[dict[str, Any]]:
    """Return the complete objects of the first list of objects in `text`."""
    content = _strip_fence(text[:LONGEST_REPLY])
    opening = _LIST.search(content)
    objects: list[dict[str, Any]] = []
    at = opening.end() if opening else len(content)
    while at < len(content) and content[at] == "{":
        try:
            value, at = _read_value(content, at)
        except ValueError:
            break
        objects.append(value)
        between = _BETWEEN.match(content, at)
        at = between.end() if between else at
    return objects


def read_list(text: str, key: str) -> list[Any] | BrokenList:
    """Read a reply that should be a list, or an object with the list under `key` or under its only key."""
    try:
        value = read_json(text)
    except NotJsonError as error:
        return BrokenList(tuple(read_whole_objects(text)), str(error))
    if isinstance(value, dict):
        listed = value.get(key, next(iter(value.values())) if len(value) == 1 else None)
        if isinstance(listed, list):
            return listed
        return BrokenList((), f"it is an object without a list {key!r}")
    return value if isinstance(value, list) else BrokenList((), "it is no list")
