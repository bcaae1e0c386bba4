"""Where the server environment and the converted demo model live."""

from __future__ import annotations

import os
from pathlib import Path


def server_root() -> Path:
    """`$EVALHARNESS_HOME/server`, else `server` in the user's data folder."""
    home = os.environ.get("EVALHARNESS_HOME")
    if home:
        return Path(home).expanduser() / "server"
    import platformdirs

    return platformdirs.user_data_path("evalharness") / "server"


def cache_root() -> Path:
    """`$EVALHARNESS_HOME/cache`, else the user's cache folder."""
    home = os.environ.get("EVALHARNESS_HOME")
    if home:
        return Path(home).expanduser() / "cache"
    import platformdirs

    return platformdirs.user_cache_path("evalharness")
