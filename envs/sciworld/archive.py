"""Make an archive of the simulator's classes, with which Java starts faster.

A separate process plays a few turns and makes the archive in the user's cache folder, once for each Java and each
version of the simulator. Java itself checks whether an archive fits, and otherwise starts without it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.locks import hold_lock
from evalharness.envs.sciworld import java

_KINDS = {"aot": ("AOTCacheOutput", "AOTCache"), "jsa": ("ArchiveClassesAtExit", "SharedArchiveFile")}
"""File suffix -> (flag that writes the archive, flag that reads it). The first kind that a Java supports is used.

The first kind exists since Java 25; it also stores profiles for the compiler. The second kind exists since Java 13,
which contains an archive of Java's own classes.
"""
_NONE = "none"
"""Suffix of an empty file that says: this Java cannot make an archive, so do not try again."""
_TIMEOUT = 180.0
"""Time limit in seconds for making an archive; a later start tries again. It needs four to eight seconds of CPU."""
_QUIET = "-Xlog:disable"
"""Disables Java's messages about an archive, because the first line of the output must be the gateway's port."""


@cache
def flags(executable: str) -> tuple[str, ...]:
    """Return the flags with which `executable` starts from its archive; make a missing archive first.

    Return no flags while another process makes the archive, or if it cannot be made.
    """
    if java.kept_folder() is None:
        return ()
    try:
        place = _place(executable)
        if not (archive := _find_archive(place)):
            _make(executable, place)
            archive = _find_archive(place)
    except OSError:  # this Java does not exist
        return ()
    if archive is None or archive.suffix == f".{_NONE}":
        return ()
    return (_QUIET, f"-XX:{_KINDS[archive.suffix[1:]][1]}={archive}")


def give_up(executable: str) -> None:
    """Stop using an archive with which Java does not start (a damaged archive can crash Java)."""
    with contextlib.suppress(OSError):
        place = _place(executable)
        if archive := _find_archive(place):
            place.with_suffix(f".{_NONE}").touch()
            archive.unlink()
    flags.cache_clear()


def _place(executable: str) -> Path:
    """Return the path of the archive without suffix. Its name identifies Java, its version, the jars and our flags."""
    files = [Path(executable).resolve(), *map(Path, java.classpath().split(os.pathsep))]
    states = [f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files]
    whose, state = (
        hashlib.sha256(repr(parts).encode()).hexdigest()[:12] for parts in (files, (states, java.FLAGS))
    )
    return java.folder() / f"classes-{whose}-{state}"


def _find_archive(place: Path) -> Path | None:
    files = (place.with_suffix(f".{kind}") for kind in (_NONE, *_KINDS))
    return next((file for file in files if file.exists()), None)


def _make(executable: str, place: Path) -> None:
    with (
        contextlib.suppress(UserError),
        hold_lock(place.with_name("classes.lock"), "another process makes it"),
    ):
        if _find_archive(place):
            return
        for older in place.parent.glob(f"{place.name.rpartition('-')[0]}-*"):
            older.unlink(missing_ok=True)
        with contextlib.suppress(subprocess.TimeoutExpired):
            for kind, (write, _) in _KINDS.items():
                new = place.with_suffix(f".{kind}.new")
                if _record(executable, f"-XX:{write}={new}") and new.exists():
                    new.replace(place.with_suffix(f".{kind}"))
                    return
            place.with_suffix(f".{_NONE}").touch()


def _record(executable: str, flag: str) -> bool:
    """Play a rehearsal with `flag`; return whether it succeeded. Raise TimeoutExpired if it takes too long."""
    command = [sys.executable, "-P", "-m", "evalharness.envs.sciworld.rehearsal", executable, _QUIET, flag]
    quiet = subprocess.DEVNULL
    done = subprocess.run(command, stdin=quiet, stdout=quiet, stderr=quiet, timeout=_TIMEOUT, check=False)
    return done.returncode == 0
