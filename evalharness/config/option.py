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
    """Describes the flag of a field, and how the field influences results: `Annotated[TYPE, Option(...)]`."""

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
    """Whether the option was added after the first runs: identities and folder names omit it if it has its default."""
    by_content: bool = False
    """Whether the option names a file or an agent whose content determines results: identities contain a hash of it."""
    stored: str | None = None
    """The option's name in manifests, if it was renamed after the first runs."""
    text: bool = False
    """Whether the flag's value stays a text, which the field's validator parses."""
    model_only: bool = False
    """Whether the option affects only models: the identity of a run with a scripted policy omits it."""


_NO_OPTION = Option()


def option_of(field: FieldInfo) -> Option:
    return next((extra for extra in field.metadata if isinstance(extra, Option)), _NO_OPTION)


class ConfigPart(BaseModel):
    """A part of a configuration. Every field is an option: the field `max_turns` makes the flag `--max-turns`. The help
    of the flag is the first paragraph of the field's docstring, with the default."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, protected_namespaces=(), use_attribute_docstrings=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_null(cls, given: Any) -> Any:
        """Refuse null characters: paths cannot contain them, and system calls would raise ValueError."""
        if isinstance(given, str) and "\0" in given:
            raise ValueError("it contains a null character")
        return given


P = TypeVar("P", bound=ConfigPart)


def make_part(kind: type[P], flags: Mapping[str, Any]) -> P:
    """Make one part of a configuration, for commands that need no other part. Raises UserError for a wrong option."""
    try:
        return kind.model_validate({key: value for key, value in flags.items() if value is not None})
    except ValidationError as error:
        raise UserError("; ".join(problems(error))) from None


_LONGEST_SHOWN = 300
"""Maximum characters of a value in a message. A configuration file can contain a value of any length."""


def problems(error: ValidationError) -> list[str]:
    """Return a message for each invalid option."""
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
