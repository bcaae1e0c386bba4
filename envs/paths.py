"""Where what belongs to the user lives, and writing a file whole or not at all. Nothing here creates a folder."""

from __future__ import annotations

import os
from pathlib import Path


def home_folder() -> Path:
    """`EVALHARNESS_HOME`, or the platform's user data directory (`~/.local/share/evalharness` on Linux)."""
    home = os.environ.get("EVALHARNESS_HOME")
    if home:
        return Path(home).expanduser()
    import platformdirs

    return platformdirs.user_data_path("evalharness", appauthor=False)


def cache_folder() -> Path:
    """`$EVALHARNESS_HOME/cache`, else the platform's user cache directory. What lies there can be made again."""
    home = os.environ.get("EVALHARNESS_HOME")
    if home:
        return Path(home).expanduser() / "cache"
    import platformdirs

    return platformdirs.user_cache_path("evalharness", appauthor=False)


def write_whole(path: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Replace `path` as a whole or not at all; two processes that write at once leave one of the two contents.

    `durable`: on the disk before the name points to it, so that a power cut loses neither. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
