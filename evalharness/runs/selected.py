"""The tasks that a run's options select."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.paths import published_folder
from evalharness.config.selection import SelectionConfig
from evalharness.envs.base import EnvSpec, Suite, Task
from evalharness.results.task_range import load_ranges
from evalharness.suites.draws import subset_of
from evalharness.suites.selection import Load, family_tasks, select


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


def selected_tasks(
    specs: Mapping[str, EnvSpec], selection: SelectionConfig, data: Path | None, load: Load = family_tasks
) -> tuple[list[Task], dict[str, int]]:
    """(tasks, with `--subset` task id -> how many it stands for). Raises UserError."""
    tasks = select(
        specs,
        selection.tasks,
        selection.suite,
        data=data,
        suite_seed=selection.suite_seed,
        limit=selection.limit,
        draw=selection.draw,
        questions=selection.questions,
        load=load,
    )
    if selection.subset is None:
        return tasks, {}
    if selection.limit or selection.draw:
        raise UserError("--subset draws its own tasks; leave out --limit and the tasks of each family")
    families: dict[str, list[Task]] = {}
    for task in tasks:
        if specs[task.family].held_out:
            families.setdefault(task.family, []).append(task)
    wanted = {
        family: spec.suites.expected[selection.suite]
        for family, spec in specs.items()
        if spec.held_out and selection.suite in spec.suites.expected
    }
    if not wanted or {family: len(listed) for family, listed in families.items()} != wanted:
        raise UserError(
            "--subset stands for the whole held-out score"
            + ("; leave out --tasks" if wanted else f", which suite {selection.suite} does not have")
        )
    stands_for = subset_of(families, selection.subset, difficulty_of(selection.suite, selection.suite_seed))
    return [task for task in tasks if task.id in stands_for], stands_for
