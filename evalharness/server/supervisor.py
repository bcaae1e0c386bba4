"""Runs one command and takes its whole process tree down when the command ends or the parent goes away.

Run as a script by `process.py`, standard library only:

    python -I -S supervisor.py CONTROL_FD GRACE_SECONDS SCRATCH COMMAND [ARGUMENT ...]

CONTROL_FD is one end of a socket pair. The kernel closes the parent's end whatever ends the parent, a
SIGKILL included; end-of-file here is therefore the one order to stop. Whatever comes before it says that
the command is at work: only then has it GRACE_SECONDS to end in. vLLM answers no SIGTERM while it starts, and
has nothing to lose. What goes the other way is `started PID`, then `exited STATUS` (negative: the signal),
one line each; or `failed REASON`.

vLLM is a tree (API server, engine core, workers, resource trackers) whose inner processes survive the
death of the outer one. On Linux this process is a child subreaper: orphaned descendants become its
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

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_KILL_SECONDS = 30.0
"""How long SIGKILL may take; a process stuck in a driver is then left behind."""
_TRACKER_SECONDS = 2.0
_STARTING_SECONDS = 1.0
"""Of grace, until the command is at work."""


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
        return 127
    child = started.pid
    _tell(control, f"started {child}")

    status: int | None = None
    at_work = False
    while status is None:
        readable, _, _ = select.select([control.fileno(), wake_up], [], [])
        told = control.recv(64) if control.fileno() in readable else None
        at_work = at_work or bool(told)
        stop = told == b""
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
