"""A protocol's prompt texts as an agent reads them: those of its authors, which the user imports, or none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SLOT = re.compile(r"\{(\w+)\}")


def filled(template: str, **values: object) -> str:
    """`template` with each `{name}` of `values` in its place, in one pass: a value may hold braces of its own."""
    return _SLOT.sub(lambda slot: str(values[slot[1]]) if slot[1] in values else slot[0], template)


def text_of(texts: Mapping[str, Any] | None, name: str, otherwise: str) -> str:
    """One text of the imported ones, else our wording."""
    return otherwise if texts is None else str(texts[name])
