"""Where things are: the user's folders, and what is installed with the package. Nothing here creates a folder."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from envs.paths import cache_folder, home_folder, write_whole

__all__ = [
    "cache_folder",
    "checkout",
    "data_folder",
    "home_folder",
    "prompts_folder",
    "published_folder",
    "reference_folder",
    "server_folder",
    "write_whole",
]


def data_folder() -> Path:
    """`EVALHARNESS_DATA`, or `data` inside the home folder. It holds `agentboard/<family>/...`."""
    data = os.environ.get("EVALHARNESS_DATA")
    return Path(data).expanduser() if data else home_folder() / "data"


def server_folder() -> Path:
    """`server` in the home folder: the private environment that vLLM runs in."""
    return home_folder() / "server"


def checkout() -> Path:
    """The folder above this package: the project's root where it runs from a source checkout."""
    return Path(__file__).parents[1]


def _shipped(name: str, *source: str) -> Path:
    installed = Path(str(files("evalharness"))) / name
    return installed if installed.is_dir() else checkout().joinpath(*source)


def prompts_folder() -> Path:
    """The prompt files: inside the installed package, or beside it in a source checkout."""
    return _shipped("_prompts", "prompts")


def published_folder() -> Path:
    """The published tables: inside the installed package, or beside it in a source checkout."""
    return _shipped("_published", "results", "published")


def reference_folder() -> Path:
    """Floors and ceilings: inside the installed package, or beside it in a source checkout."""
    return _shipped("_reference", "results", "reference")
