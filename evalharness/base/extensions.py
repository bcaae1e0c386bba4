"""Load additions of wings and other packages. The core finds them by entry points and does not import them itself.

The group `evalharness.commands` has commands (docs/adding-a-command.md); `evalharness.hooks` has functions that the
core or another wing calls by name. A missing module is skipped: its wing's folder was removed.
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
    """Return the function that an installed wing has registered under this name, or None."""
    for point in entry_points(group=HOOKS, name=name):
        if is_there(point):
            function: Callable[..., Any] = point.load()
            return function
    return None


def is_there(point: EntryPoint) -> bool:
    """Return whether an entry point's module exists. An import that fails inside it is still an error."""
    from importlib.util import find_spec

    try:
        return find_spec(point.module) is not None
    except ModuleNotFoundError:
        return False
