"""Locks between processes. The system releases a lock when the process that holds it ends, however it ends.

The package filelock does not fit: where a file system has no `flock` it makes a file instead, which stays after
`kill -9`, and it looks again every 50 ms instead of waiting.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from evalharness.base.errors import UserError


def lock(file: IO[bytes] | int) -> bool:
    """Lock an open file until it is closed; False where another process holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def held(path: Path, refusal: str) -> IO[bytes]:
    """The lock file `path`, ours until it is closed. Raises UserError, which says `refusal`, where another process has
    it; OSError where it cannot be made."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not blocking: the name could be a pipe's, and opening that waits for a reader.
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        file = os.fdopen(opened, "wb")
        if not lock(file):
            file.close()
            raise UserError(refusal)
        # Whoever had it may have ended, and removed it, before the lock was ours.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()


@contextmanager
def exclusive(path: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Wait for the lock file or the folder `path` and hold it; `on_wait` is called once when another process does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not lock(opened):
            on_wait()
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)
