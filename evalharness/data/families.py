"""Where each environment's folder is, without importing it: for the data files that lie beside its code."""

from __future__ import annotations

from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path


def family_folders() -> dict[str, Path]:
    """Family -> folder, sorted: the environments shipped here, and those that join by entry point."""
    package = find_spec("envs")
    folders = {
        child.name: child
        for root in (package.submodule_search_locations or [] if package else [])
        for child in Path(root).iterdir()
        if child.is_dir() and not child.name.startswith("_")
    }
    for point in entry_points(group="evalharness.environments"):
        if point.name not in folders and (module := find_spec(point.module)) and module.origin:
            folders[point.name] = Path(module.origin).parent
    return dict(sorted(folders.items()))
