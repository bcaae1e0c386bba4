"""Locate the user's folders and the files installed with the package, without creating a folder; replace files.

The environments also use this module, so it imports only `redaction` of this package.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evalharness.base.redaction import redact


def home_folder() -> Path:
    """Return `EVALHARNESS_HOME`, or the platform's user data directory (`~/.local/share/evalharness` on Linux)."""
    home = os.environ.get("EVALHARNESS_HOME")
    if home:
        return Path(home).expanduser()
    import platformdirs

    return platformdirs.user_data_path("evalharness", appauthor=False)


def cache_folder() -> Path:
    """Return `$EVALHARNESS_HOME/cache`, or the platform's user cache directory. All files there can be made again."""
    home = os.environ.get("EVALHARNESS_HOME")
    if home:
        return Path(home).expanduser() / "cache"
    import platformdirs

    return platformdirs.user_cache_path("evalharness", appauthor=False)


def data_folder() -> Path:
    """Return `EVALHARNESS_DATA`, or `data` in the home folder. It contains `agentboard/<family>/...`."""
    data = os.environ.get("EVALHARNESS_DATA")
    return Path(data).expanduser() if data else home_folder() / "data"


def server_folder() -> Path:
    """Return `server` in the home folder, which contains the private environment of vLLM."""
    return home_folder() / "server"


def checkout() -> Path:
    """Return the folder above this package: the project's root in a source checkout."""
    return Path(__file__).parents[2]


def _locate_shipped(name: str, *source: str) -> Path:
    installed = Path(__file__).parents[1] / name
    return installed if installed.is_dir() else checkout().joinpath(*source)


def prompts_folder() -> Path:
    """Return the folder of prompt files: inside the installed package, or beside it in a source checkout."""
    return _locate_shipped("_prompts", "prompts")


def find_published_folder() -> Path:
    """Return the folder of published tables: inside the installed package, or beside it in a source checkout."""
    return _locate_shipped("_published", "results", "published")


def ranges_folder() -> Path:
    """Return the folder of floors and ceilings: inside the installed package, or beside it in a source checkout."""
    return _locate_shipped("_reference", "results", "reference")


def real_path(path: Path | str) -> Path:
    """Return the absolute path without symbolic links; circular links are followed as far as possible."""
    return Path(os.path.realpath(path))


def write_whole(path: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Replace `path` as a whole or not at all; if two processes write at once, one of the two contents is kept.

    `durable`: sync the data before the rename, so that a power cut loses neither file. Raises OSError.
    """
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(redact(content).encode("utf-8") if isinstance(content, str) else content)
        if durable:
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`: at the end the file replaces `path`; after an error it is removed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def folder_name(text: str, otherwise: str) -> str:
    """Return `text` without characters that are unsafe in a folder's name; `otherwise` if no character is left."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:60] or otherwise
