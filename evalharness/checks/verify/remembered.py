"""Which run folders were verified on this machine: known by their content, kept in the user's cache.

What a folder says of itself is never trusted; what this machine replayed is known again byte by byte.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.reading import open_file
from evalharness.base.remembered import RememberedNumbers
from evalharness.base.version import __version__
from evalharness.records.resolved import CONFIG
from evalharness.records.store import EPISODES, ERRORS, MANIFEST, SUMMARY

_FILES = (MANIFEST, CONFIG, EPISODES, ERRORS, SUMMARY, "episodes.parquet", "turns.parquet")
_VERIFIED = RememberedNumbers("verified.json", most=5000)
"""When each was."""


def require_files(folder: Path) -> None:
    """Raises UserError where one of the files is something else: a pipe or a device would be read for ever."""
    for name in _FILES:
        path = folder / name
        if path.exists() and not path.is_file():
            raise UserError(f"{path} is not a plain file")


def content_key(folder: Path) -> str:
    """SHA-256 of everything that a verification looks at, and of the version that looks. Raises OSError."""
    whole = hashlib.sha256(__version__.encode())
    for name in _FILES:
        path = folder / name
        if path.exists():
            with open_file(path) as file:
                whole.update(f"\0{name}\0".encode() + hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()


def remember(folder: Path, content: str) -> None:
    """Note that the folder was verified, unless it is no longer what it was when the replay began (`content`).

    A cache that cannot be written costs a later replay, no more."""
    with contextlib.suppress(OSError):
        if content_key(folder) == content:
            _VERIFIED.note(content, time.time())


def was_verified(folder: Path) -> bool:
    try:
        return content_key(folder) in _VERIFIED.all()
    except OSError:
        return False
