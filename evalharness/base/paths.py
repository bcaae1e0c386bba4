"""Where things are: the user's folders, and what is installed with the package. No function creates a folder.

And writing a file whole or not at all. The environments use this module too, so of ours it imports `redaction` alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evalharness.base.redaction import redact


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


def data_folder() -> Path:
    """`EVALHARNESS_DATA`, or `data` inside the home folder. It holds `agentboard/<family>/...`."""
    data = os.environ.get("EVALHARNESS_DATA")
    return Path(data).expanduser() if data else home_folder() / "data"


def server_folder() -> Path:
    """`server` in the home folder: the private environment that vLLM runs in."""
    return home_folder() / "server"


def checkout() -> Path:
    """The folder above this package: the project's root where it runs from a source checkout."""
    return Path(__file__).parents[2]


def _shipped(name: str, *source: str) -> Path:
    installed = Path(__file__).parents[1] / name
    return installed if installed.is_dir() else checkout().joinpath(*source)


def prompts_folder() -> Path:
    """The prompt files: inside the installed package, or beside it in a source checkout."""
    return _shipped("_prompts", "prompts")


def published_folder() -> Path:
    """The published tables: inside the installed package, or beside it in a source checkout."""
    return _shipped("_published", "results", "published")


def ranges_folder() -> Path:
    """Floors and ceilings: inside the installed package, or beside it in a source checkout."""
    return _shipped("_reference", "results", "reference")


def real_path(path: Path | str) -> Path:
    """Absolute and without symbolic links; where those lead in a circle, as far as they can be followed."""
    return Path(os.path.realpath(path))


def write_whole(path: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Replace `path` as a whole or not at all; two processes that write at once leave one of the two contents.

    `durable`: on the disk before the name points to it, so that a power cut loses neither. Raises OSError."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(redact(content).encode("utf-8") if isinstance(content, str) else content)
        if durable:
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside `path` to write a file to: at the end it replaces `path`; after an error it is gone."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def folder_name(text: str, otherwise: str) -> str:
    """What a person or a server called something, as the name of a folder; `otherwise` where nothing is left of it."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:60] or otherwise
