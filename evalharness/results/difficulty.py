"""How hard the tasks of the held-out score are, as far as anybody knows before a model has played them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache

from evalharness.base.paths import published_folder
from evalharness.envs.base import Suite, Task
from evalharness.results.task_range import load_ranges


def difficulty_of(suite: Suite, suite_seed: int) -> Callable[[Task], float]:
    """Of a task, in an order in which harder ones are larger; values of different suites are not to be compared.

    The published suite: what eight models left undone (results/published/task_difficulty.csv). The open one of seed 0:
    what chance leaves undone, then the length of the known plan. Others: the label easy or hard.
    """
    if suite == "agentboard":
        known = _published()
        return lambda task: known.get((task.family, task.index), 0.5)
    ranges = load_ranges(suite, suite_seed)

    def of(task: Task) -> float:
        found = ranges.get(task.id)
        if found is None:
            return float(task.difficulty == "hard")
        return 1 - (found.floor_progress or 0.0) + (found.plan_turns or 100) / 1000

    return of


@cache
def _published() -> dict[tuple[str, int], float]:
    """(family, number) -> the share of success and progress that the models did not get."""
    path = published_folder() / "task_difficulty.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return {
            (row["family"], int(row["task"])): 1
            - (float(row["mean_progress"]) + float(row["mean_success"])) / 2
            for row in csv.DictReader(file)
        }
