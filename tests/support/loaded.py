"""Commands in processes of their own, forked from one that has the libraries loaded: half of what a short command costs
is importing pandas, pyarrow and aiohttp anew.

Nothing of ours is loaded beforehand. Two such processes take turns, each with another hash seed: what depends on the
order of a set still differs from one command to the next.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import count
from pathlib import Path

LIBRARIES = (
    "aiohttp", "asyncio", "encodings.idna", "gymnasium", "numpy", "packaging.version", "pandas",
    "platformdirs", "psutil", "pyarrow", "pyarrow.pandas_compat", "pyarrow.parquet", "pydantic.dataclasses",
    "pydantic.main", "pydantic.plugin._loader", "pydantic.type_adapter", "regex", "rich.console", "rich.live",
    "rich.progress", "rich.table", "scipy.optimize", "scipy.special", "scipy.stats", "sqlite3", "uvloop", "yaml",
)  # fmt: skip
_turns = count()


def can_run(environment: Mapping[str, str]) -> bool:
    """Not with variables that Python reads at its start alone."""

    def read_at_start(variables: Mapping[str, str]) -> dict[str, str]:
        return {
            name: value
            for name, value in variables.items()
            if name.startswith(("PYTHON", "LC_", "LANG", "LD_")) and name != "PYTHONPATH"
        }

    return sys.platform == "linux" and read_at_start(environment) == read_at_start(os.environ)


class Command:
    """`python -m evalharness ARGUMENTS`, started; as an `asyncio.subprocess.Process`."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self.arguments = list(arguments)
        self.returncode: int | None = None
        outputs = [os.pipe(), os.pipe()]
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(_loaded(next(_turns) % 2))
            request = json.dumps([self.arguments, dict(environment), str(Path.cwd())]).encode()
            fds = array.array("i", [write for _, write in outputs])
            link.sendmsg([len(request).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
            link.sendall(request)
            self._answer = link.makefile("rb")
        for _, write in outputs:
            os.close(write)
        self._files = [os.fdopen(read, "rb", buffering=0) for read, _ in outputs]
        self.pid = int(self._answer.readline())

    def finish(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Its output, when it has ended. Raises TimeoutError."""
        until = None if timeout is None else time.monotonic() + timeout
        texts = {file.fileno(): bytearray() for file in self._files}
        with selectors.DefaultSelector() as selector:
            for file in self._files:
                selector.register(file, selectors.EVENT_READ)
            while selector.get_map():
                found = selector.select(until and max(0.0, until - time.monotonic()))
                if not found:
                    raise TimeoutError
                for key, _ in found:
                    chunk = os.read(key.fd, 65536)
                    texts[key.fd] += chunk
                    if not chunk:
                        selector.unregister(key.fileobj)
        for file in self._files:
            file.close()
        with self._answer:
            self.returncode = int(self._answer.readline())
        output, errors = texts.values()
        return bytes(output), bytes(errors)

    async def communicate(self) -> tuple[bytes, bytes]:
        return await asyncio.to_thread(self.finish)

    async def wait(self) -> int:
        await self.communicate()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run(
    arguments: Sequence[str], environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """`python -m evalharness ARGUMENTS`, with its output."""
    command = Command(arguments, environment)
    try:
        texts = [text.decode().replace("\r\n", "\n") for text in command.finish(timeout)]
    except TimeoutError:
        command.kill()
        raise subprocess.TimeoutExpired(command.arguments, timeout) from None
    assert command.returncode is not None
    return subprocess.CompletedProcess(command.arguments, command.returncode, *texts)


@cache
def _loaded(number: int) -> str:
    """The socket of a process with the libraries loaded. It ends with this one."""
    place = Path(tempfile.mkdtemp(prefix="loaded-", dir="/tmp")) / "socket"
    process = subprocess.Popen(
        [sys.executable, __file__, place],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"loaded\n"
    _held.append(process)
    return str(place)


_held: list[subprocess.Popen[bytes]] = []


def _serve(place: Path) -> None:
    import gc
    import importlib

    del sys.path[0]  # the folder of this file
    for name in LIBRARIES:
        importlib.import_module(name)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen(64)
        gc.freeze()
        os.write(1, b"loaded\n")
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            selector.register(0, selectors.EVENT_READ)
            while all(key.fd != 0 for key, _ in selector.select()):  # its input ends with the tests
                link, _ = listener.accept()
                if os.fork() == 0:
                    selector.close()
                    listener.close()
                    os._exit(_attend(link))
                link.close()
                with contextlib.suppress(ChildProcessError):
                    while os.waitpid(-1, os.WNOHANG)[0]:
                        pass
    place.unlink()
    place.parent.rmdir()


def _attend(link: socket.socket) -> int:
    """Start the command of one request, and tell how it ended."""
    head, ancillary, _, _ = link.recvmsg(8, socket.CMSG_SPACE(8))
    fds = array.array("i")
    fds.frombytes(ancillary[0][2])
    request = b""
    while len(request) < int.from_bytes(head, "big"):
        request += link.recv(65536)
    pid = os.fork()
    if pid == 0:
        link.close()
        _become(*json.loads(request), list(fds))
    for fd in fds:
        os.close(fd)
    link.sendall(b"%d\n" % pid)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    link.sendall(b"%d\n" % status)
    return 0


def _become(arguments: list[str], environment: dict[str, str], folder: str, fds: list[int]) -> None:
    """`python -m evalharness`, as if it had just been started."""
    import atexit
    import runpy
    import threading

    import numpy as np

    null = os.open(os.devnull, os.O_RDONLY)
    for number, fd in enumerate([null, *fds]):
        os.dup2(fd, number)
        os.close(fd)
    # Those from before the fork know what their files were then.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    np.random.seed()
    paths = [Path(folder, part) for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part]
    sys.path[:] = [folder, *map(str, paths), *sys.path]
    sys.argv[:] = ["evalharness", *arguments]
    status: object = 0
    try:
        runpy.run_module("evalharness", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    os._exit(status if isinstance(status, int) else 1 if status else 0)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):  # of the terminal, meant for the tests
        _serve(Path(sys.argv[1]))
