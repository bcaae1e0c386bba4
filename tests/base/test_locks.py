"""A lock between processes ends with its holder, also where that is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evalharness.base.errors import UserError
from evalharness.base.locks import exclusive, hold_lock

HOLD = """
import sys
from pathlib import Path
from evalharness.base.locks import exclusive, hold_lock
way = {"exclusive": exclusive, "held": lambda path: hold_lock(path, "taken")}[sys.argv[1]]
with way(Path(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holding(way: str, path: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, way, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


@pytest.mark.parametrize("way", ["exclusive", "held"])
def test_a_killed_holder_holds_nothing(tmp_path: Path, way: str) -> None:
    path = tmp_path / "lock"
    with holding(way, path) as process:
        with pytest.raises(UserError, match="taken"):
            hold_lock(path, "taken")
        process.kill()
        process.wait()
        hold_lock(path, "taken").close()


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_waiting_process_says_so_once_and_gets_the_lock(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "lock"
    if kind == "folder":
        path.mkdir()
    with holding("exclusive", path) as process:
        said = []

        def on_wait() -> None:
            said.append("waiting")
            process.kill()

        with exclusive(path, on_wait):
            assert said == ["waiting"]
