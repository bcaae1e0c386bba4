"""An archive of the simulator's classes, read and checked, from which Java starts in less time.

Made once for each Java and each version of the simulator, in the user's cache folder, by a process of its own that
plays a few turns. Java itself checks whether an archive fits it, and starts without it where it does not.
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
from evalharness.base.locks import held
from evalharness.envs.sciworld import java

_KINDS = {"aot": ("AOTCacheOutput", "AOTCache"), "jsa": ("ArchiveClassesAtExit", "SharedArchiveFile")}
"""Suffix of the file -> the flags that write and read it; the first that a Java can is taken.

The first since Java 25; it also keeps what the methods did, for the compiler. The second since Java 13, where Java
itself has an archive of its own classes.
"""
_NONE = "none"
"""Suffix of an empty file: this Java can make none, and nobody tries again."""
_TIMEOUT = 180.0
"""Seconds for making one, after which it is left to another start. It takes four to eight of CPU."""
_QUIET = "-Xlog:disable"
"""What Java has to say of an archive would stand where the gateway's port is expected."""


@cache
def flags(executable: str) -> tuple[str, ...]:
    """The flags with which `executable` starts from its archive, which is made now where there is none.

    No flags while another process makes it, and where it cannot be made.
    """
    if java.kept_folder() is None:
        return ()
    try:
        place = _place(executable)
        if not (found := _found(place)):
            _make(executable, place)
            found = _found(place)
    except OSError:  # there is no such Java
        return ()
    if found is None or found.suffix == f".{_NONE}":
        return ()
    return (_QUIET, f"-XX:{_KINDS[found.suffix[1:]][1]}={found}")


def give_up(executable: str) -> None:
    """Java does not start with its archive (a damaged one can end it): it does without from now on."""
    with contextlib.suppress(OSError):
        place = _place(executable)
        if found := _found(place):
            place.with_suffix(f".{_NONE}").touch()
            found.unlink()
    flags.cache_clear()


def _place(executable: str) -> Path:
    """Without a suffix. The name says which Java it is for, and which state of it, of the jars and of our flags."""
    files = [Path(executable).resolve(), *map(Path, java.classpath().split(os.pathsep))]
    states = [f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files]
    whose, state = (
        hashlib.sha256(repr(parts).encode()).hexdigest()[:12] for parts in (files, (states, java.FLAGS))
    )
    return java.folder() / f"classes-{whose}-{state}"


def _found(place: Path) -> Path | None:
    files = (place.with_suffix(f".{kind}") for kind in (_NONE, *_KINDS))
    return next((file for file in files if file.exists()), None)


def _make(executable: str, place: Path) -> None:
    with contextlib.suppress(UserError), held(place.with_name("classes.lock"), "another process makes it"):
        if _found(place):
            return
        for older in place.parent.glob(f"{place.name.rpartition('-')[0]}-*"):
            older.unlink(missing_ok=True)
        with contextlib.suppress(subprocess.TimeoutExpired):
            for kind, (write, _) in _KINDS.items():
                new = place.with_suffix(f".{kind}.new")
                if _recorded(executable, f"-XX:{write}={new}") and new.exists():
                    new.replace(place.with_suffix(f".{kind}"))
                    return
            place.with_suffix(f".{_NONE}").touch()


def _recorded(executable: str, flag: str) -> bool:
    """Whether a rehearsal with `flag` went well. Raises TimeoutExpired."""
    command = [sys.executable, "-P", "-m", "evalharness.envs.sciworld.rehearsal", executable, _QUIET, flag]
    quiet = subprocess.DEVNULL
    done = subprocess.run(command, stdin=quiet, stdout=quiet, stderr=quiet, timeout=_TIMEOUT, check=False)
    return done.returncode == 0
