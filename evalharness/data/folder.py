"""Where things that belong to the user live. Nothing here creates a folder."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def home_folder() -> Path:
    """`EVALHARNESS_HOME`, or the platform's user data directory (`~/.local/share/evalharness` on Linux)."""
    home = os.environ.get("EVALHARNESS_HOME")
    return Path(home).expanduser() if home else platformdirs.user_data_path("evalharness", appauthor=False)


def data_folder() -> Path:
    """`EVALHARNESS_DATA`, or `data` inside the home folder. It holds `agentboard/<family>/...`."""
    data = os.environ.get("EVALHARNESS_DATA")
    return Path(data).expanduser() if data else home_folder() / "data"
