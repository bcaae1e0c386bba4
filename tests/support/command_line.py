"""The command line as a person starts it, in a process of its own."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import loaded
import pandas as pd

from evalharness.base.reading import read_object
from evalharness.records.lines import read_lines

EXAMPLE = Path(__file__).parent / "example_environment"
Started = asyncio.subprocess.Process | loaded.Command
TIMING = ["policy_s", "latency_s", "environment_s", "worker_s", "started", "wall_s", "tries"]
"""Columns that differ from run to run: times, and how often a request had to be made again."""


def surroundings(folder: Path, *, again: bool = False) -> dict[str, str]:
    """An empty home, and the Compass environment installed; `again`: as it was left."""
    (folder / "faults").mkdir(exist_ok=again)
    return {
        **os.environ,
        "PYTHONPATH": str(EXAMPLE),
        "EVALHARNESS_HOME": str(folder / "home"),
        "COMPASS_FAULTS": str(folder / "faults"),
        "COLUMNS": "80",
    }


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "evalharness", *map(str, arguments)]


def evalharness(environment: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    if loaded.can_run(environment):
        return loaded.run(list(map(str, arguments)), environment, timeout=300)
    return subprocess.run(
        command(*arguments), env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def run_compass(environment: dict[str, str], folder: Path, *more: object) -> subprocess.CompletedProcess[str]:
    return evalharness(environment, "run", "--suite", "open", "--tasks", "compass", "-o", folder, *more)


async def start(environment: dict[str, str], *arguments: object) -> Started:
    if loaded.can_run(environment):
        return loaded.Command(list(map(str, arguments)), environment)
    return await asyncio.create_subprocess_exec(
        *command(*arguments),
        env=environment,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )


def finished(run: Path) -> int:
    """Episodes that a run has written so far."""
    episodes = run / "episodes.jsonl"
    return episodes.read_bytes().count(b"\n") if episodes.exists() else 0


def frames(folder: Path) -> list[pd.DataFrame]:
    """A run's two tables without the columns that differ from run to run, and without the name of the policy."""
    return [
        pd.read_parquet(folder / f"{name}.parquet").drop(columns=[*TIMING, "model"], errors="ignore")
        for name in ("episodes", "turns")
    ]


def assert_same_results(first: Path, second: Path) -> None:
    for one, other in zip(frames(first), frames(second), strict=True):
        pd.testing.assert_frame_equal(one, other)


def in_a_terminal(arguments: list[str], variables: dict[str, str]) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    master, slave = pty.openpty()
    with os.fdopen(master, "rb", buffering=0) as reader:
        process = subprocess.Popen(
            command(*arguments),
            env={**environment, "TERM": "xterm-256color", "PAGER": "cat", **variables},
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        output = b""
        while chunk := _read(reader):
            output += chunk
        assert process.wait(60) == 0, output
    return output.decode().replace("\r\n", "\n")


def _read(reader: object) -> bytes:
    try:
        return os.read(reader.fileno(), 65536)  # type: ignore[attr-defined]
    except OSError:  # the other side has closed
        return b""


def read_records(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a file of records."""
    return list(read_lines(path, "", read_object))
