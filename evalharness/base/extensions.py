"""Load commands and functions from optional parts ("wings") and other packages by entry points, without imports.

The group `evalharness.commands` has commands (docs/adding-a-command.md). The group `evalharness.hooks` has functions
that the core or a wing calls by name. Entry points of a missing module are skipped, so a wing's folder can be removed.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

COMMANDS = "evalharness.commands"
HOOKS = "evalharness.hooks"


def load_extensions(group: str) -> dict[str, Any]:
    """Map the name of each entry point of a group to its object, sorted by name."""
    points = sorted(entry_points(group=group), key=lambda point: point.name)
    return {point.name: point.load() for point in points if is_there(point)}


def find_hook(name: str) -> Callable[..., Any] | None:
    """Return the function that an installed wing registers as `name` in `evalharness.hooks`; None if there is none."""
    for point in entry_points(group=HOOKS, name=name):
        if is_there(point):
            function: Callable[..., Any] = point.load()
            return function
    return None


def is_there(point: EntryPoint) -> bool:
    """Return whether an entry point's module exists. Errors inside the module appear later, when it is loaded."""
    from importlib.util import find_spec

    try:
        return find_spec(point.module) is not None
    except ModuleNotFoundError:
        return False
