"""Lock files between processes. The system releases a lock when its process ends for any reason.

The package filelock is not suitable: on a file system without `flock` it makes a file instead, which remains after
`kill -9`, and it polls every 50 ms instead of waiting.
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
    """Lock an open file until the file is closed. Return False if another process holds the lock, otherwise True."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def hold_lock(path: Path, refusal: str) -> IO[bytes]:
    """Lock the file `path` until it is closed. Raises UserError with `refusal` if another process holds the lock;
    OSError if the file cannot be made."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        # O_NONBLOCK: if `path` is a pipe, opening it would otherwise wait for a reader.
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        file = os.fdopen(opened, "wb")
        if not lock(file):
            file.close()
            raise UserError(refusal)
        # The process that held the lock before may have removed the file. Then lock the file that is there now.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()


@contextmanager
def exclusive(path: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Wait for the lock of the file or folder `path`; call `on_wait` once if another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not lock(opened):
            on_wait()
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)
