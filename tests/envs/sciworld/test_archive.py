"""The archive of classes that Java starts from: made once, and never in the way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from evalharness.envs.sciworld import archive, java, jvm
from evalharness.envs.sciworld.simulator import Simulator

pytestmark = pytest.mark.slow


@pytest.fixture
def cache(clean_home: Path) -> Iterator[Path]:
    """An empty cache folder; the archive of an earlier process is not known."""
    _forget()
    yield clean_home / "evalharness" / "cache" / "scienceworld"
    _forget()


def _forget() -> None:
    archive.flags.cache_clear()
    java.folder.cache_clear()
    java.find_table_folder.cache_clear()


def _first_room() -> tuple[str, list[str]]:
    """What a new world shows, and the command line of its Java."""
    simulator = Simulator()
    simulator.load("boil", 5, "openDoors")
    assert jvm._shared is not None
    command = psutil.Process(jvm._shared.pid).cmdline()
    room = simulator.step("look around")
    simulator.close()
    return room, command


def _archives(folder: Path) -> list[Path]:
    return [file for file in folder.glob("classes-*") if file.stat().st_size > 0]


def test_the_first_start_makes_an_archive_that_later_ones_read(cache: Path) -> None:
    room, command = _first_room()
    (made,) = _archives(cache)
    assert any(flag.endswith(f"={made}") for flag in command)
    state = made.stat()
    assert _first_room() == (room, command)
    assert made.stat().st_mtime_ns == state.st_mtime_ns

    # A file that is no archive is not used; one that is cut off ends Java, which then starts without.
    whole = made.read_bytes()
    made.chmod(0o600)
    made.write_bytes(b"nonsense")
    assert _first_room()[0] == room
    made.write_bytes(whole[:100_000])
    damaged_room, damaged_command = _first_room()
    assert damaged_room == room
    assert not any(flag.endswith(f"={made}") for flag in damaged_command)
    assert _archives(cache) == []


def test_a_java_that_cannot_make_an_archive_is_asked_once(cache: Path, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    executable = tmp_path / "java"
    executable.write_text(f"#!/bin/sh\necho >> {tries}\nexit 1\n")
    executable.chmod(0o700)
    assert archive.flags(str(executable)) == ()
    first = tries.read_text()
    assert first
    archive.flags.cache_clear()
    assert archive.flags(str(executable)) == ()
    assert tries.read_text() == first
    assert _archives(cache) == []


def test_another_state_of_java_gets_another_archive(cache: Path, tmp_path: Path) -> None:
    executable = tmp_path / "java"
    executable.write_text("#!/bin/sh\nexit 1\n")
    before = archive._place(str(executable))
    os.utime(executable, ns=(0, 0))
    after = archive._place(str(executable))
    assert before != after
    assert before.name.rpartition("-")[0] == after.name.rpartition("-")[0]


def test_without_a_place_to_write_java_starts_without_an_archive(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("EVALHARNESS_HOME", str(tmp_path / "file" / "home"))
    room, command = _first_room()
    assert room.startswith("This room is called")
    assert not any("SharedArchiveFile" in flag or "AOTCache" in flag for flag in command)
