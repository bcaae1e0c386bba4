"""A command under the supervisor: it and everything it starts is gone when we are, however we end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from evalharness.errors import InfrastructureError

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_SWEEP_SECONDS = 40.0
"""Beyond the grace period: the supervisor itself gives SIGKILL up to 30 s."""


class SupervisedProcess:
    """Made by `start`; ended by `stop`, or by the end of this process."""

    def __init__(
        self,
        supervisor: subprocess.Popen[bytes],
        pid: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        grace: float,
    ) -> None:
        self.pid = pid
        """Of the command itself, also its process group."""
        self.returncode: int | None = None
        """Exit status once dead; negative is the signal."""
        self._supervisor = supervisor
        self._writer = writer
        self._grace = grace
        self._watcher = asyncio.create_task(self._watch(reader))

    @classmethod
    async def start(
        cls, argv: Sequence[str], *, env: Mapping[str, str], log: Path, scratch: Path, grace: float = 8.0
    ) -> SupervisedProcess:
        """Run `argv` with its output appended to `log`. On `stop` it has `grace` seconds before SIGKILL, or a second if
        it is not `at_work` yet.

        The folder `scratch` is removed when everything has ended. Raises `InfrastructureError`.
        """
        # Both ends are close-on-exec: only the supervisor gets its own, so end-of-file cannot be held up.
        ours, theirs = socket.socketpair()
        try:
            with theirs, log.open("ab") as output:
                supervisor = subprocess.Popen(  # noqa: ASYNC220  (milliseconds; works on any event loop)
                    [
                        sys.executable,
                        "-I",
                        "-S",
                        _SUPERVISOR,
                        str(theirs.fileno()),
                        str(grace),
                        scratch,
                        *argv,
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=dict(env),
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            reader, writer = await asyncio.open_connection(sock=ours)
        except OSError as error:
            ours.close()
            raise InfrastructureError(f"the server cannot be started: {error}") from error
        except BaseException:
            ours.close()
            raise
        word, _, rest = (await reader.readline()).decode().strip().partition(" ")
        if word != "started":
            writer.close()
            supervisor.wait()
            raise InfrastructureError(f"{argv[0]} could not be started: {rest or 'its supervisor died'}")
        return cls(supervisor, int(rest), reader, writer, grace)

    @property
    def alive(self) -> bool:
        return not self._watcher.done() and self.returncode is None

    def at_work(self) -> None:
        """It has come so far that it can end by itself, and should."""
        if not self._watcher.done():
            self._writer.write(b"at work\n")

    async def wait(self) -> int:
        """Until the command and all its descendants are gone; its exit status."""
        await asyncio.shield(self._watcher)
        assert self.returncode is not None
        return self.returncode

    async def stop(self) -> None:
        """End the command and everything below it. Idempotent; being cancelled does not undo the order."""
        if not self._watcher.done():
            # Half-closed, so that the exit status can still come back.
            with contextlib.suppress(OSError):
                self._writer.write_eof()
        try:
            await asyncio.wait_for(asyncio.shield(self._watcher), self._grace + _SWEEP_SECONDS)
        except TimeoutError:
            self._supervisor.kill()
            await self._watcher

    async def _watch(self, reader: asyncio.StreamReader) -> None:
        while line := await self._line(reader):
            word, _, rest = line.decode().strip().partition(" ")
            if word == "exited":
                self.returncode = int(rest)
        # Its end of the socket is closed, so it is ending; it is our child and has to be collected.
        while self._supervisor.poll() is None:  # noqa: ASYNC110  (no event tells of it on every loop)
            await asyncio.sleep(0.01)
        if self.returncode is None:
            # The supervisor itself was killed: the command died with it, the rest of the tree did not.
            self.returncode = -signal.SIGKILL
        _kill_session(self._supervisor.pid)
        self._writer.close()

    @staticmethod
    async def _line(reader: asyncio.StreamReader) -> bytes:
        with contextlib.suppress(ConnectionError):
            return await reader.readline()
        return b""


def _kill_session(session: int) -> None:
    """SIGKILL whatever is left of a session."""
    import psutil

    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == session:
                os.kill(pid, signal.SIGKILL)
