"""What is expensive to make and only read is made once for a whole test session, for all processes of pytest-xdist."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


def session_folder(factory: pytest.TempPathFactory) -> Path:
    """One folder for all processes of the session."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@contextlib.contextmanager
def only_one(place: Path) -> Iterator[None]:
    """One process of the session at a time; `place` is made."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder `name`, filled by `make(folder)` in the process that asks first; others wait for it.

    A `make` that fails has made nothing: the next one that asks tries again.
    """
    place = session_folder(factory) / "made-once" / name
    with only_one(place):
        done = place / "done"
        if not done.exists():
            made = place / f"try-{len(list(place.iterdir()))}"
            make(made)
            done.write_text(made.name)
        return place / done.read_text()


@contextlib.contextmanager
def used_together(
    factory: pytest.TempPathFactory, name: str, start: Callable[[Path], None], stop: Callable[[Path], None]
) -> Iterator[Path]:
    """The folder of something that runs: started by the first process that uses it, stopped by the last."""
    place = session_folder(factory) / "used-together" / name
    users = place / "users"
    with only_one(place):
        count = int(users.read_text()) if users.exists() else 0
        if count == 0:
            start(place)
        users.write_text(str(count + 1))
    try:
        yield place
    finally:
        with only_one(place):
            left = int(users.read_text()) - 1
            users.write_text(str(left))
            if left == 0:
                stop(place)
