"""Servers that stay between runs: one file for each tells where it is and what it serves.

`evalharness server start MODEL` starts a process of its own (`keeper.py`) that owns a vLLM and writes the file. A run
that wants exactly that server (the same checkpoint by its hash, the same vLLM, the same arguments) uses it instead of
starting one. It listens on loopback only, and ends when nobody has used it for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evalharness.base.errors import InfrastructureError
from evalharness.base.paths import home_folder, write_whole
from evalharness.base.reading import read_known
from evalharness.models.serving.find import ServerCommand

IDLE_S = 1800.0
"""Default of how long nobody may use a server before it ends."""
_TOUCH_EVERY = 20.0
"""Seconds between two signs of life of a run that uses a server."""
_LOOK_EVERY = 1.0


@dataclass(frozen=True)
class Kept:
    """A server that its keeper says is ready."""

    key: str
    model: str
    """As it was named on the command line."""
    served: str
    """The checkpoint's folder, or the hub id."""
    served_name: str
    identity: Mapping[str, Any]
    """What tells checkpoints apart, as in a run's identity."""
    base_url: str
    version: str | None
    argv: list[str]
    max_model_len: int
    keeper_pid: int
    keeper_started: float
    """As the system tells it: with the pid it names one process for ever."""
    started: float
    idle_s: float
    log: str

    @property
    def path(self) -> Path:
        return kept_folder() / f"{self.key}.json"

    def alive(self) -> bool:
        import psutil

        try:
            keeper = psutil.Process(self.keeper_pid)
            same = abs(keeper.create_time() - self.keeper_started) < 1.0
            # In a container nobody may collect it once it has ended.
            return same and keeper.status() != psutil.STATUS_ZOMBIE
        except (psutil.Error, ValueError, OverflowError):  # a damaged file names no process
            return False

    def touch(self) -> None:
        """Somebody uses it."""
        with contextlib.suppress(OSError):
            os.utime(self.path)

    @property
    def idle_for(self) -> float:
        """Seconds since somebody used it."""
        try:
            return max(0.0, time.time() - self.path.stat().st_mtime)
        except OSError:
            return 0.0

    def write(self) -> None:
        """Only for its owner to read."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(self.path, json.dumps(asdict(self), indent=2) + "\n")


def kept_folder() -> Path:
    return home_folder() / "kept-servers"


def kept_key(
    identity: Mapping[str, Any],
    command: ServerCommand,
    extra: Sequence[str],
    variables: Mapping[str, str] | None = None,
) -> str:
    """The same for all that would be served alike. A server for a hub id is known by that alone, as a run is."""
    what = [dict(identity), str(command.path), command.version, list(extra), dict(variables or {})]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]


def read_kept(path: Path) -> Kept | None:
    """None where it is no such file, or that of a keeper that is gone; such a file is removed."""
    from pydantic import TypeAdapter

    try:
        kept = TypeAdapter(Kept).validate_python(read_known(path))
    except ValueError:
        return None
    if not kept.alive():
        path.unlink(missing_ok=True)
        return None
    return kept


def all_kept() -> list[Kept]:
    """The oldest first."""
    found = [read_kept(path) for path in kept_folder().glob("*.json")]
    return sorted((kept for kept in found if kept is not None), key=lambda kept: kept.started)


def stop_kept(kept: Kept, wait_s: float = 60.0) -> bool:
    """End the server and its keeper. False where it does not end in time."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(kept.keeper_pid, signal.SIGTERM)
    until = time.monotonic() + wait_s
    while kept.alive():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    kept.path.unlink(missing_ok=True)
    return True


class KeptServer:
    """A kept server as a run sees it (`ModelServer`): there already, and still there when the run is over."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept
        self.version = kept.version
        self.argv = kept.argv
        self.api_key: str | None = None
        self._using: asyncio.Task[None] | None = None

    @property
    def base_url(self) -> str:
        return self.kept.base_url

    async def start(self) -> None:
        """Raises InfrastructureError where it has just ended."""
        if not self.alive():
            raise InfrastructureError(f"{self._name} has ended; the same command starts one of its own")
        self.kept.touch()
        self._using = asyncio.create_task(self._use())

    async def _use(self) -> None:
        while True:
            await asyncio.sleep(_TOUCH_EVERY)
            self.kept.touch()

    async def stop(self) -> None:
        """It is not this run's to stop."""
        if self._using is not None:
            self._using.cancel()
            self._using = None
            self.kept.touch()

    async def restart(self) -> None:
        raise InfrastructureError(f"{self._name} cannot be started again from here")

    async def kill(self) -> None:
        await asyncio.to_thread(stop_kept, self.kept)

    def alive(self) -> bool:
        return self.kept.alive()

    async def wait_dead(self) -> None:
        while self.alive():  # noqa: ASYNC110  (it is no child of ours, so nothing tells of its end)
            await asyncio.sleep(_LOOK_EVERY)

    def failure(self) -> str | None:
        return None if self.alive() else f"{self._name} has ended; its log: {self.kept.log}"

    @property
    def _name(self) -> str:
        return f"the kept vLLM of {self.kept.model}"
