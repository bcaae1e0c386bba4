"""Read a JSON file of a run folder as a frozen pydantic model. An editor, a sync tool or a disk may damage files: an
invalid file raises a ValueError that names the position of the error in one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evalharness.base.errors import UserError
from evalharness.base.version import __version__

SCHEMA = 1
"""Version of the manifest format that this harness writes, and the newest version that it reads."""

Count = Annotated[int, Field(ge=0, le=10**9)]
Counts = dict[str, Count]
"""Family -> count."""
Limit = Annotated[int, Field(ge=1, le=10**6)]
Rate = Annotated[float, Field(ge=0, le=1 + 1e-9)]
"""A fraction, 0..1."""
Interval = Annotated[tuple[float, float], Field(strict=False)]
"""Low and high end of a 95 % interval; for a rate, both are fractions 0..1."""


class Stored(BaseModel):
    """Base class of such models. Reading a file and writing it again does not change it: unknown keys (of another
    version) are kept, and keys that were not given are not written."""

    model_config = ConfigDict(
        extra="allow",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        protected_namespaces=(),
        use_attribute_docstrings=True,
    )

    @classmethod
    def of(cls, value: object) -> Self:
        """Validate a JSON value. Raise ValueError if it does not fit this model."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise ValueError(why(error)) from None

    def list_given_fields(self) -> dict[str, Any]:
        """Return the fields that were given, including unknown keys. Do not convert nested models."""
        return {
            name: value
            for name, value in self
            if name in self.model_fields_set or name not in type(self).model_fields
        }

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_unset=True)


def refuse_later(path: Path, manifest: object) -> None:
    """Raise UserError if `manifest` has a newer format than this version knows."""
    schema = manifest.get("schema", SCHEMA) if isinstance(manifest, Mapping) else SCHEMA
    if isinstance(schema, int) and schema > SCHEMA:
        raise UserError(
            f"{path} has format {schema}, from a later version of evalharness; this version ({__version__}) reads "
            f"formats up to {SCHEMA}: update evalharness"
        )


_LONGEST_NAME = 80


def why(error: ValidationError) -> str:
    """Return the first error as text: `identity.config.samples: input should be a valid integer`."""
    first = error.errors(include_url=False, include_input=False)[0]
    names = (str(part) if str(part).isprintable() else ascii(part) for part in first["loc"])
    key = ".".join(name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..." for name in names)
    text = first["msg"].removeprefix("Value error, ")
    text = text[:1].lower() + text[1:]
    return f"{key}: {text}" if key else text
