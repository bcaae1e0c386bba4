"""Group values by key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def group_by_key(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Map each key to its values; both keep their order."""
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
