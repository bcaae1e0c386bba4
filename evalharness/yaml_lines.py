"""What is wrong with a YAML file that a person wrote, in one line: where it is, which key, and what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from pydantic import ValidationError

_MISSING, _UNKNOWN = "missing", "extra_forbidden"


def syntax_problem(error: Exception) -> str:
    """Of text that is no YAML, or cannot be read at all."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        hint = "; a value with a colon in it needs quotes" if "mapping values" in str(error.problem) else ""
        began = error.context_mark.line + 1 if mark and error.context_mark else None
        inside = f" (in what begins in line {began})" if mark and began not in (None, mark.line + 1) else ""
        return f"{where}{error.problem or error.context or 'no YAML'}{inside}{hint}"
    if isinstance(error, yaml.reader.ReaderError) and error.encoding not in ("utf8", "utf-8"):
        return f"a character that YAML does not allow, code {error.character}"
    if isinstance(error, yaml.reader.ReaderError | UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return " ".join(str(error).split())


def value_problems(error: ValidationError, raw: bytes | str) -> str:
    """Of values that are not what they should be: `line 3, example.steps.0.action: ...` for the first few."""
    root = yaml.compose(raw, Loader=yaml.SafeLoader)
    found = []
    for problem in error.errors():
        loc = problem["loc"]
        line = _line_of(root, loc)
        what = {_MISSING: "is missing", _UNKNOWN: "no such key"}.get(problem["type"], problem["msg"])
        place = ".".join(map(str, loc)) or "the file"
        found.append((line, f"line {line}, {place}: {what[0].lower()}{what[1:]}"))
    found.sort()
    shown = [text for _, text in found[:3]]
    return "; ".join(shown) + (f"; and {len(found) - 3} more" if len(found) > 3 else "")


def _line_of(node: yaml.Node | None, loc: Sequence[int | str]) -> int:
    """The line of the innermost key of `loc` that is there, from 1."""
    line = 1
    for part in loc:
        if isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return line
