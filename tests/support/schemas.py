"""JSON schemas of a run folder's files; `python tests/support/schemas.py docs/schemas` writes them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from evalharness.records.files import MANIFEST, SUMMARY
from evalharness.records.manifest import Manifest
from evalharness.records.stored import Stored
from evalharness.records.summary import Summary


class _WithoutTitles(GenerateJsonSchema):
    """A title would repeat each key."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schemas() -> dict[str, str]:
    """Name of the file -> its text."""
    found: dict[str, type[Stored]] = {MANIFEST: Manifest, SUMMARY: Summary}
    return {
        name: json.dumps(model.model_json_schema(schema_generator=_WithoutTitles), indent=1) + "\n"
        for name, model in found.items()
    }


if __name__ == "__main__":
    for name, text in schemas().items():
        Path(sys.argv[1], name).write_text(text, encoding="utf-8")
