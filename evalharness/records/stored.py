"""A run folder's JSON file as a frozen model. Files may be damaged by an editor, a sync tool or a disk: the content
becomes a valid model here, or a ValueError that names the place of the error in one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evalharness.base.errors import UserError
from evalharness.base.version import __version__

SCHEMA = 1
"""Of the manifests that this version writes, and the newest that it reads."""

Count = Annotated[int, Field(ge=0, le=10**9)]
Counts = dict[str, Count]
"""By family."""
Limit = Annotated[int, Field(ge=1, le=10**6)]
Rate = Annotated[float, Field(ge=0, le=1 + 1e-9)]
"""A fraction, 0..1."""
Interval = Annotated[tuple[float, float], Field(strict=False)]
"""Low and high end of a 95 % interval; of a rate fractions 0..1."""


class Stored(BaseModel):
    """Keys that this version does not know are kept: another version writes more. A key that was not given is not
    written either, so that a file that was read is written again as it was."""

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
        """Raises ValueError unless `value`, as JSON holds it, has this shape."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise ValueError(why(error)) from None

    def given_fields(self) -> dict[str, Any]:
        """Return the fields that were given, including unknown keys; nested models stay models."""
        return {
            name: value
            for name, value in self
            if name in self.model_fields_set or name not in type(self).model_fields
        }

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_unset=True)


def refuse_later(path: Path, manifest: object) -> None:
    """Raises UserError if a later version wrote `manifest` in a format that this one does not know."""
    schema = manifest.get("schema", SCHEMA) if isinstance(manifest, Mapping) else SCHEMA
    if isinstance(schema, int) and schema > SCHEMA:
        raise UserError(
            f"{path} is of format {schema}, from a later version of evalharness; this one ({__version__}) reads "
            f"formats up to {SCHEMA}: update evalharness"
        )


_LONGEST_NAME = 80


def why(error: ValidationError) -> str:
    """Return the first error, `identity.config.samples: input should be a valid integer`."""
    first = error.errors(include_url=False, include_input=False)[0]
    names = (str(part) if str(part).isprintable() else ascii(part) for part in first["loc"])
    key = ".".join(name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..." for name in names)
    text = first["msg"].removeprefix("Value error, ")
    text = text[:1].lower() + text[1:]
    return f"{key}: {text}" if key else text
