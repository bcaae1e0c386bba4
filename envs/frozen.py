"""Read and write stored tasks of suite seed 0, because generating them takes seconds to minutes. Files have one JSON
object per line, for readable diffs. `evalharness.suites.open` checks the tasks by their hashes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from evalharness.envs.task import Task

FROZEN_SEED = 0


def read_table(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def write_table(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Generate and report the rows, which can take minutes, and then write all of them."""
    lines = []
    for row in rows:
        lines.append(json.dumps(row) + "\n")
        print(lines[-1], end="", file=sys.stderr)
    file.write_text("".join(lines), encoding="utf-8")


@cache
def read_frozen_tasks(file: Path) -> tuple[Task, ...]:
    """Return the tasks of a table; read it once per process."""
    return tuple(map(Task.from_json, read_table(file)))
