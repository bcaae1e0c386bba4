"""What a field of a configuration says of its flag, beside its type."""

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
    """Beside a field's type (`Annotated`): what its flag looks like, and whether results depend on it."""

    metavar: str | None = None
    """None: `N` for a whole number, `X` for a fraction, `DIR` for a path, `NAME=VALUE` for a mapping, else `TEXT`."""
    short: str | None = None
    """`-o`."""
    repeated: bool = False
    """The flag of a single value may be given several times."""
    no_flag: bool = False
    """Only for a configuration file and Python."""
    operational: bool = False
    """How the work is done: results do not depend on it, so that a run may be continued with another value."""
    later: bool = False
    """Added when there were runs without it: a part of their identity, and of their folder's name, only where it is not
    the default."""
    by_content: bool = False
    """Results depend on what it names and not on the name: that is part of a run's identity as a hash, elsewhere."""
    stored: str | None = None
    """Its name in manifests, where it had another one when there were runs already."""
    text: bool = False
    """The flag's text is parsed by the field's validator."""
    model_only: bool = False
    """Changes nothing for a scripted policy, and is not in its run's identity."""


_NO_OPTION = Option()


def option_of(field: FieldInfo) -> Option:
    return next((extra for extra in field.metadata if isinstance(extra, Option)), _NO_OPTION)


class Part(BaseModel):
    """A part of a configuration. Every field is an option: `max_turns` is `--max-turns`, made of the field alone.

    The first paragraph of a field's docstring is the flag's help; the default is added.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, protected_namespaces=(), use_attribute_docstrings=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _without_null(cls, given: Any) -> Any:
        """No path and no name of the system can hold one, and its calls say so with a ValueError."""
        if isinstance(given, str) and "\0" in given:
            raise ValueError("it holds a null character")
        return given


P = TypeVar("P", bound=Part)


def make_part(kind: type[P], flags: Mapping[str, Any]) -> P:
    """One part of a configuration, for commands that need no more. Raises UserError naming the option that is wrong."""
    try:
        return kind.model_validate({key: value for key, value in flags.items() if value is not None})
    except ValidationError as error:
        raise UserError("; ".join(problems(error))) from None


_LONGEST_SHOWN = 300
"""Characters of a value that a message repeats: it may come from a file, and be anything."""


def problems(error: ValidationError) -> list[str]:
    """A line for each thing that is wrong with an option."""
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
