"""Describe the flag of a configuration field, and check parts of a configuration."""

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
    """If None: `N` for a whole number, `X` for a fraction, `DIR` for a path, `NAME=VALUE` for a mapping, else
    `TEXT`."""
    short: str | None = None
    """A short flag, such as `-o`."""
    repeated: bool = False
    """Whether the flag may be given several times although the field has a single value."""
    no_flag: bool = False
    """Whether the option exists only in configuration files and Python."""
    operational: bool = False
    """Whether results do not depend on the option, so that a run can be continued with another value."""
    later: bool = False
    """Whether earlier runs lacked the option: a run's identity and folder name contain it only without its default."""
    by_content: bool = False
    """Whether results depend on the named content: a run's identity contains the content's hash, not the name."""
    stored: str | None = None
    """The option's name in manifests, if it was renamed after the first runs."""
    text: bool = False
    """Whether the field's validator parses the flag's text."""
    model_only: bool = False
    """Whether the option has no effect on a scripted policy; the identity of such a run does not contain it."""


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
        """Refuse null characters: paths cannot contain them, and system calls would raise ValueError."""
        if isinstance(given, str) and "\0" in given:
            raise ValueError("it contains a null character")
        return given


P = TypeVar("P", bound=ConfigPart)


def make_part(kind: type[P], flags: Mapping[str, Any]) -> P:
    """Make one part of a configuration, for commands that need no others. Raises UserError naming the wrong option."""
    try:
        return kind.model_validate({key: value for key, value in flags.items() if value is not None})
    except ValidationError as error:
        raise UserError("; ".join(problems(error))) from None


_LONGEST_SHOWN = 300
"""Maximum characters of a value in a message, since a file can contain any text."""


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
