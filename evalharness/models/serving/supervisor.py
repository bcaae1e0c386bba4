"""A command that ends, with its whole process tree, when it is stopped or when the process that started it goes away.

Both ends of one socket pair stand here. `SupervisedProcess` is ours. The other end has this file as a script, which
uses the standard library only:

    python -I -S supervisor.py CONTROL_FD GRACE_SECONDS SCRATCH COMMAND [ARGUMENT ...]

CONTROL_FD is its end of the pair. When our process ends, even by SIGKILL, the kernel closes our end. End-of-file
is the only order to stop. Any byte before it says that the command is at work: only then may it take GRACE_SECONDS to
end. vLLM answers no SIGTERM while it starts, and has nothing to lose. The script sends us
`started PID`, then `exited STATUS` (negative: the signal), one line each; or `failed REASON`.

vLLM is a tree (API server, engine core, workers, resource trackers) whose inner processes survive the
death of the outer one. On Linux the script is a child subreaper: orphaned descendants become its
children, so "no children left" means that everything is gone, even what changed its process group.
Elsewhere only the process group is killed. The folder SCRATCH is removed last of all.
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

if (
    __name__ != "__main__"
):  # the script's interpreter has no site-packages, and starts in half the time without asyncio
    import asyncio
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from evalharness.base.errors import InfrastructureError

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_KILL_SECONDS = 30.0
"""How long SIGKILL may take; a process stuck in a driver is then left behind."""
_TRACKER_SECONDS = 2.0
_STARTING_SECONDS = 1.0
"""Of grace, until the command is at work."""
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
        cls,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path | BinaryIO,
        scratch: Path,
        grace: float = 8.0,
    ) -> SupervisedProcess:
        """Run `argv` with its output appended to `log`; of a pipe the writing end, which is closed here. On `stop` it
        has `grace` seconds before SIGKILL, or a second if it is not `at_work` yet.

        The folder `scratch` is removed when everything has ended. Raises `InfrastructureError`.
        """
        # Both ends are close-on-exec: only the supervisor gets its own, so end-of-file cannot be held up.
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
            self._supervisor.send_signal(signal.SIGCONT)  # the command may have stopped it
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
        # Kept: one that is dropped collects its child if that has ended already, and the exit status is lost.
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
    """A file descriptor from which each of these signals can be read as one byte."""
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
    """Exit statuses of the children (adopted ones too) that have ended; with none left `child` has, too."""
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
    """Ask the command to end; what is still there after `grace` seconds is left to `_kill_rest`."""
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
    """SIGKILL every descendant until there is none; each round adopts the orphans of the one before."""
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < _KILL_SECONDS:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            break
        for pid in _descendants(os.getpid()):
            # A resource tracker ends by itself once those it serves are gone, after removing their shared memory.
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
    """Every process below `root`, from /proc; [] where there is none."""
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
