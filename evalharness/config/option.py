"""A configuration field's facts about its flag, beside its type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from pydantic.fields import FieldInfo

from evalharness.base.errors import UserError
from evalharness.base.text import printable


@dataclass(frozen=True)
class Option:
    """Annotates a field's type (`Annotated`) with the form of its flag and its influence on results."""

    metavar: str | None = None
    """None: `N` for a whole number, `X` for a fraction, `DIR` for a path, `NAME=VALUE` for a mapping, else `TEXT`."""
    short: str | None = None
    """`-o`."""
    repeated: bool = False
    """The flag of a single value may be given several times."""
    no_flag: bool = False
    """Available only in configuration files and Python."""
    operational: bool = False
    """Results do not depend on the option, so a run may be continued with another value."""
    later: bool = False
    """Added after the first runs: part of a run's identity and folder name only if it differs from the default."""
    by_content: bool = False
    """Results depend on the content that it names: a run's identity holds the content's hash instead of the name."""
    stored: str | None = None
    """Its name in manifests, if the option was renamed after the first runs."""
    text: bool = False
    """The flag's text is parsed by the field's validator."""
    model_only: bool = False
    """Changes nothing for a scripted policy, and is not in such a run's identity."""


_NO_OPTION = Option()


def option_of(field: FieldInfo) -> Option:
    return next((extra for extra in field.metadata if isinstance(extra, Option)), _NO_OPTION)


class ConfigPart(BaseModel):
    """A part of a configuration. Every field is an option: the field `max_turns` makes the flag `--max-turns`.

    The first paragraph of a field's docstring is the flag's help; the default is added.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, protected_namespaces=(), use_attribute_docstrings=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _without_null(cls, given: Any) -> Any:
        """Refuse null characters: no path or system name can hold one, and system calls raise ValueError."""
        if isinstance(given, str) and "\0" in given:
            raise ValueError("it holds a null character")
        return given


P = TypeVar("P", bound=ConfigPart)


def make_part(kind: type[P], flags: Mapping[str, Any]) -> P:
    """Make one part of a configuration, for commands that need no more. Raises UserError naming the wrong option."""
    try:
        return kind.model_validate({key: value for key, value in flags.items() if value is not None})
    except ValidationError as error:
        raise UserError("; ".join(problems(error))) from None


_LONGEST_SHOWN = 300
"""Characters of a value that a message repeats: a value from a file may be anything."""


def problems(error: ValidationError) -> list[str]:
    """Return a line for each error in an option."""
    lines = []
    for problem in error.errors():
        why = problem["msg"].removeprefix("Value error, ")
        if not problem["loc"]:
            lines.append(why)
            continue
        flag = "--" + ".".join(str(part) for part in problem["loc"]).replace("_", "-")
        given = printable(str(problem.get("input"))[:_LONGEST_SHOWN], single_line=True)
        lines.append(f"{flag} {given}: {why[0].lower()}{why[1:]}")
    return lines
