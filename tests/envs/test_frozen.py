"""A table of suite seed 0 is read as it was written, a task a line."""

from __future__ import annotations

from pathlib import Path

from evalharness.envs.base import Task
from evalharness.envs.frozen import read_frozen_tasks, write_table

TASKS = tuple(
    Task(f"toy/open/{index:03d}", "toy", "open", index, "go", "easy", "walk", subgoals=("see", "go"))
    for index in range(2)
)


def test_tasks_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "suite.jsonl"
    write_table(file, (task.to_json() for task in TASKS))
    assert read_frozen_tasks(file) == TASKS
    assert len(file.read_text().splitlines()) == len(TASKS)
