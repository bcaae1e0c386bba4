"""What is kept of suite seed 0 beside a generator that takes seconds to minutes: a JSON object a line, so that a change
of the suite can be read. Whether these are the tasks that were proven, `evalharness.suites.open` tells by their hashes.
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
    """At once, when all are there; says each on standard error, since finding them can take minutes."""
    lines = []
    for row in rows:
        lines.append(json.dumps(row) + "\n")
        print(lines[-1], end="", file=sys.stderr)
    file.write_text("".join(lines), encoding="utf-8")


@cache
def frozen_tasks(file: Path) -> tuple[Task, ...]:
    """The tasks that a table holds, read once a process."""
    return tuple(map(Task.from_json, read_table(file)))
