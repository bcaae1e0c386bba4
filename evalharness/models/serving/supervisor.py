"""Run a command and end its whole process tree when it is stopped or when the process that started it ends.

This file contains both ends of a socket pair. `SupervisedProcess` runs in the harness's process. The other end is this
file as a script, which uses only the standard library:

    python -I -S supervisor.py CONTROL_FD GRACE_SECONDS SCRATCH COMMAND [ARGUMENT ...]

CONTROL_FD is the script's end of the pair. When the harness's process ends, even by SIGKILL, the kernel closes the
other end. End-of-file is the only order to stop. A byte before it means that the command has started up: only then
does it get GRACE_SECONDS to end. While vLLM starts, it ignores SIGTERM and can be killed without a loss. The script
sends `started PID`, then `exited STATUS` (negative: the signal), one line each; or `failed REASON`.

vLLM is a tree of processes (API server, engine core, workers, resource trackers), and its inner processes survive the
death of the outer one. On Linux the script is a child subreaper: orphaned descendants become its children. So when no
child is left, all processes have ended, even those in another process group. On other systems only the process group
is killed. The folder SCRATCH is removed last.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

if __name__ != "__main__":  # the script needs none of these imports, and cannot import packages
    import asyncio
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from evalharness.base.errors import InfrastructureError

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_KILL_SECONDS = 30.0
"""Seconds that SIGKILL may take; after that, a process that hangs in a driver is left running."""
_TRACKER_SECONDS = 2.0
_STARTING_SECONDS = 1.0
"""Seconds of grace before the command has started up."""
_SWEEP_SECONDS = 40.0
"""Seconds for which `stop` waits after the grace period; the supervisor itself waits `_KILL_SECONDS` after SIGKILL."""


class SupervisedProcess:
    """A command and its descendants. They end when `stop` is called or when the harness's process ends."""

    def __init__(
        self,
        supervisor: subprocess.Popen[bytes],
        pid: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        grace: float,
    ) -> None:
        self.pid = pid
        """Process id of the command, also of its process group."""
        self.returncode: int | None = None
        """Exit status after the end; a negative one is the signal."""
        self._supervisor = supervisor
        self._writer = writer
        self._grace = grace
        self._watcher = asyncio.create_task(self._watch(reader))

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path | BinaryIO,
        scratch: Path,
        grace: float = 8.0,
    ) -> SupervisedProcess:
        """Run `argv` and append its output to `log`; if `log` is the writing end of a pipe, it is closed here. After
        `stop` the command has `grace` seconds until SIGKILL, or one second if `at_work` was not called.

        The folder `scratch` is removed after all processes have ended. Raises `InfrastructureError`.
        """
        # Both sockets are close-on-exec: no other child holds our end open, so the supervisor sees its end-of-file.
        ours, theirs = socket.socketpair()
        try:
            with theirs, log.open("ab") if isinstance(log, Path) else log as output:
                supervisor = subprocess.Popen(  # noqa: ASYNC220  (milliseconds; works on any event loop)
                    [
                        sys.executable,
                        "-I",
                        "-S",
                        __file__,
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
            raise InfrastructureError(f"{argv[0]} could not be started: {error}") from error
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
        """Tell the supervisor that the command has started up: after `stop`, it gets the full grace period."""
        if not self._watcher.done():
            self._writer.write(b"at work\n")

    async def wait(self) -> int:
        """Wait until the command and all its descendants have ended; return the exit status."""
        await asyncio.shield(self._watcher)
        assert self.returncode is not None
        return self.returncode

    async def stop(self) -> None:
        """End the command and its descendants. Idempotent; if this call is cancelled, the command still ends."""
        if not self._watcher.done():
            self._supervisor.send_signal(signal.SIGCONT)  # the command may have paused the supervisor
            # Close only the writing half: the exit status must still arrive.
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
        # The supervisor has closed its end of the socket, so it is ending: wait for it.
        while self._supervisor.poll() is None:  # noqa: ASYNC110  (not every event loop has an event for it)
            await asyncio.sleep(0.01)
        if self.returncode is None:
            # The supervisor was killed: the command died with it, but its descendants did not.
            self.returncode = -signal.SIGKILL
        _kill_session(self._supervisor.pid)
        self._writer.close()

    @staticmethod
    async def _line(reader: asyncio.StreamReader) -> bytes:
        with contextlib.suppress(ConnectionError):
            return await reader.readline()
        return b""


def _kill_session(session: int) -> None:
    """Kill the remaining processes of a session."""
    import psutil

    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == session:
                os.kill(pid, signal.SIGKILL)


def main(control_fd: int, grace: float, scratch: str, command: list[str]) -> int:
    control = socket.socket(fileno=control_fd)
    control.set_inheritable(False)
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if libc is not None:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def die_with_supervisor() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    wake_up = _wake_up_on(signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    try:
        # Keep a reference: a garbage-collected Popen reaps its child, and the exit status is lost.
        started = subprocess.Popen(command, process_group=0, preexec_fn=die_with_supervisor)
    except OSError as error:
        _tell(control, f"failed {error}")
        shutil.rmtree(scratch, ignore_errors=True)
        return 127
    child = started.pid
    _tell(control, f"started {child}")

    status: int | None = None
    at_work = False
    while status is None:
        readable, _, _ = select.select([control.fileno(), wake_up], [], [])
        message = control.recv(64) if control.fileno() in readable else None
        at_work = at_work or bool(message)
        stop = message == b""
        if wake_up in readable:
            stop = bool(set(os.read(wake_up, 64)) - {signal.SIGCHLD}) or stop
        status = _reap(child).get(child)
        if stop and status is None:
            status = _terminate(child, grace if at_work else min(grace, _STARTING_SECONDS))
    _tell(control, f"exited {status}")
    _kill_rest(child)
    shutil.rmtree(scratch, ignore_errors=True)
    return 0


def _wake_up_on(*signals: signal.Signals) -> int:
    """Return a file descriptor that becomes readable, with one byte, when one of `signals` arrives."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in signals:
        signal.signal(number, lambda *_: None)
    return reading


def _tell(control: socket.socket, message: str) -> None:
    with contextlib.suppress(OSError):
        control.sendall(message.replace("\n", " ").encode() + b"\n")


def _reap(child: int) -> dict[int, int]:
    """Map process id to exit status for each ended child, also adopted ones. Without children, `child` counts as 0."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            ended.setdefault(child, 0)
            return ended
        if pid == 0:
            return ended
        ended[pid] = os.waitstatus_to_exitcode(status)


def _terminate(child: int, grace: float) -> int:
    """Ask the command to end within `grace` seconds; `_kill_rest` kills what remains."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        ended = _reap(child)
        if child in ended:
            return ended[child]
        time.sleep(0.02)
    return -signal.SIGKILL


def _kill_rest(child: int) -> None:
    """Kill every descendant until none is left; orphans become our children, so the next round kills them."""
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < _KILL_SECONDS:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            break
        for pid in _descendants(os.getpid()):
            # A resource tracker removes its processes' shared memory after their end, and then ends by itself.
            if elapsed < _TRACKER_SECONDS and _is_resource_tracker(pid):
                continue
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    if sys.platform != "linux":
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)


def _is_resource_tracker(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            return b"multiprocessing.resource_tracker" in file.read()
    except OSError:
        return False


def _descendants(root: int) -> list[int]:
    """Return every descendant of `root`, from /proc; [] if there is no /proc."""
    parents: dict[int, int] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):  # noqa: PTH208  (pathlib doubles this script's start time)
            if name.isdigit():
                with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    below: list[int] = []
    layer = [root]
    while layer:
        layer = [pid for pid, parent in parents.items() if parent in layer]
        below += layer
    return below


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4:]))
