"""Read a YAML file that a person wrote; report an error in one line with line number, key and problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from evalharness.base.errors import UserError, nearest
from evalharness.base.reading import DEEPEST, read_bytes, whole_characters

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound="BaseModel")
_MISSING, _UNKNOWN = "missing", "extra_forbidden"
_LARGEST = 4 << 20
"""Maximum bytes of a file: PyYAML reads some hundred thousand per second."""
_LONGEST_NAME = 80
_MOST_VALUES = 100_000
"""Maximum number of values in a file. Each alias counts all its values: nested aliases can expand to gigabytes."""


class _BoundedLoader(yaml.SafeLoader):
    """A YAML loader that limits depth and number of values, and raises only YAMLError for bad content."""

    def __init__(self, stream: bytes | str) -> None:
        super().__init__(stream)
        self._depth = self._values = 0
        self._values_of: dict[yaml.Node, int] = {}
        """Complete node -> number of values in it."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        mark: Any = event.start_mark
        before = self._values
        self._depth += 1
        if self._depth > DEEPEST:
            raise yaml.composer.ComposerError(None, None, "nested too deep", mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(event, yaml.AliasEvent) and node is not None:
            if node not in self._values_of:
                problem = f"the alias {event.anchor!r} is inside the value that it names"
                raise yaml.composer.ComposerError(None, None, problem, mark)
            self._values += self._values_of[node]
        elif node is not None:
            self._values += 1
            self._values_of[node] = self._values - before
        if self._values > _MOST_VALUES:
            problem = f"more than {_MOST_VALUES:,} values (aliases count each time)"
            raise yaml.composer.ComposerError(None, None, problem, mark)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
            if isinstance(value, int | float) and not math.isfinite(value):
                raise ValueError("a number that is not finite")
        except OverflowError:
            problem = "a number that is too large"
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            # PyYAML raises these for text that looks like a date or a number, such as 2024-99-99
            problem = f"no value: {error}" if isinstance(error, ValueError) else f"no value of {node.tag}"
        else:
            return whole_characters(value) if isinstance(value, str) else value
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def parse_yaml(raw: bytes | str) -> Any:
    """Parse YAML. Raises YAMLError, also for values nested too deep, for aliases that contain themselves or multiply
    the content, and for numbers that are not finite."""
    return yaml.load(raw, Loader=_BoundedLoader)


def read_yaml(path: Path) -> Any:
    """Read a YAML file. Raises OSError as `reading.open_file` does, and YAMLError."""
    return parse_yaml(read_bytes(path, _LARGEST))


def load_yaml(path: Path, what: str, missing: str | None = None) -> Any:
    """Read a person's file: `what` names it in the UserError, `missing` is the message if it does not exist."""
    try:
        return read_yaml(path)
    except FileNotFoundError:
        raise UserError(missing or f"{what}: no such file") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{what} is not readable: {syntax_problem(error)}") from None


def load_model(path: Path, kind: type[M], what: str, missing: str | None = None) -> tuple[M, bytes]:
    """Read a person's file; return (model, bytes). Raises UserError like `load_yaml`, with the keys of wrong values."""
    from pydantic import ValidationError

    raw = b""
    try:
        raw = read_bytes(path, _LARGEST)
        return kind.model_validate(parse_yaml(raw)), raw
    except FileNotFoundError:
        raise UserError(missing or f"{what}: no such file") from None
    except ValidationError as error:
        problem = _value_problems(error, kind)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValueError) as error:
        problem = syntax_problem(error)
    raise UserError(f"{what} is not usable: {problem}")


def syntax_problem(error: Exception) -> str:
    """Describe an error in text that is not YAML, or cannot be read."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        hint = "; a value with a colon in it needs quotes" if "mapping values" in str(error.problem) else ""
        began = error.context_mark.line + 1 if mark and error.context_mark else None
        inside = (
            f" (in the block that begins in line {began})"
            if mark and began not in (None, mark.line + 1)
            else ""
        )
        return f"{where}{error.problem or error.context or 'no YAML'}{inside}{hint}"
    if isinstance(error, yaml.reader.ReaderError) and error.encoding not in ("utf8", "utf-8"):
        return f"a character that YAML does not allow, code {error.character}"
    if isinstance(error, yaml.reader.ReaderError | UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return " ".join(str(error).split())


def _value_problems(error: ValidationError, kind: type[BaseModel]) -> str:
    """Describe the first wrong values: `example.steps.0.action: is missing; ...`. An unknown key gets the closest
    allowed key."""
    problems = []
    for problem in error.errors():
        what = {_MISSING: "is missing", _UNKNOWN: "no such key"}.get(problem["type"], problem["msg"])
        what = what.removeprefix("Value error, ")
        if problem["type"] == _UNKNOWN and (names := _keys_at(kind, problem["loc"][:-1])):
            what += nearest(str(problem["loc"][-1]), names)
        words = (name if name.isprintable() else ascii(name) for name in map(str, problem["loc"]))
        place = ".".join(name[:_LONGEST_NAME] for name in words) or "the file"
        problems.append(f"{place}: {what[0].lower()}{what[1:]}")
    return "; ".join(problems[:3]) + (f"; and {len(problems) - 3} more" if len(problems) > 3 else "")


def _keys_at(kind: type[BaseModel], loc: Sequence[int | str]) -> list[str]:
    """Return the keys of the mapping at `loc`, if the models within `kind` define them."""
    for name in loc:
        field = kind.model_fields.get(str(name))
        inner: Any = None if field is None else field.annotation
        if not hasattr(inner, "model_fields"):
            return []
        kind = inner
    return [field.alias or name for name, field in kind.model_fields.items()]
