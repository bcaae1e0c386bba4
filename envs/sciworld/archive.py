"""Make an archive of the simulator's loaded classes (class data sharing), with which Java starts faster.

A separate process plays a few turns, and its Java writes the archive to the user's cache folder. This happens once for
each installed Java and each version of the simulator. If an archive does not fit, Java starts without it.
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
"""File suffix -> (flag that writes the archive, flag that reads it), in the order in which they are tried.

Java 25 and newer support `aot`, which also stores profiles for the compiler. Java 13 and newer support `jsa`.
"""
_NONE = "none"
"""Suffix of an empty file that marks a Java without archive, so that later starts do not try to make an archive."""
_TIMEOUT = 180.0
"""Time limit in seconds for making an archive (four to eight seconds of CPU). After it, a later start tries again."""
_QUIET = "-Xlog:disable"
"""Flag that disables Java's messages about archives: the first line of Java's output must be the gateway's port."""


@cache
def flags(executable: str) -> tuple[str, ...]:
    """Return the flags with which the Java `executable` uses its archive. Make the archive if it does not exist.

    Return no flags if the archive cannot be made, or while another process makes it.
    """
    if java.find_table_folder() is None:
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
    """Return the archive's path without suffix. The name has a hash of the Java, the jars and our flags."""
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
    """Run `rehearsal` with the flag that makes Java write an archive; return whether it succeeded, or raise
    TimeoutExpired."""
    command = [sys.executable, "-P", "-m", "evalharness.envs.sciworld.rehearsal", executable, _QUIET, flag]
    quiet = subprocess.DEVNULL
    done = subprocess.run(command, stdin=quiet, stdout=quiet, stderr=quiet, timeout=_TIMEOUT, check=False)
    return done.returncode == 0
