"""What wings and other packages add to the core. The core finds it by entry points and imports none of them.

`evalharness.commands` holds commands (docs/commands.md), `evalharness.hooks` a function for each name that the core
or another wing asks for. A module that is gone, as after its wing's folder was removed, is skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

COMMANDS = "evalharness.commands"
HOOKS = "evalharness.hooks"


def load_extensions(group: str) -> dict[str, Any]:
    """Name -> object of each entry point of a group, sorted by name."""
    points = sorted(entry_points(group=group), key=lambda point: point.name)
    return {point.name: point.load() for point in points if is_there(point)}


def find_hook(name: str) -> Callable[..., Any] | None:
    """The function that an installed wing adds under this name; None if no wing does."""
    for point in entry_points(group=HOOKS, name=name):
        if is_there(point):
            function: Callable[..., Any] = point.load()
            return function
    return None


def is_there(point: EntryPoint) -> bool:
    """Whether the module of an entry point can be imported; an import inside it that fails is an error as usual."""
    from importlib.util import find_spec

    try:
        return find_spec(point.module) is not None
    except ModuleNotFoundError:
        return False
