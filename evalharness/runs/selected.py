"""Select the tasks of a run, and rank tasks by difficulty."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.paths import find_published_folder
from evalharness.config.selection import SelectionConfig
from evalharness.envs.base import EnvSpec, Suite, Task
from evalharness.results.task_range import load_ranges
from evalharness.suites.draws import choose_subset
from evalharness.suites.selection import Load, family_tasks, select


def make_difficulty(suite: Suite, suite_seed: int) -> Callable[[Task], float]:
    """Return a function that returns a task's difficulty. A larger value is harder; compare it only within a suite.

    The value depends on the suite. agentboard: 1 minus the mean score of eight models. open, seed 0: 1 minus the
    progress of random actions, then the length of the oracle's plan. Other suites: 1 for hard, 0 for easy tasks.
    """
    if suite == "agentboard":
        known = _load_difficulty()
        return lambda task: known.get((task.family, task.index), 0.5)
    ranges = {row.task_id: row for row in load_ranges(suite, suite_seed)}

    def of(task: Task) -> float:
        limits = ranges.get(task.id)
        if limits is None:
            return float(task.difficulty == "hard")
        return 1 - (limits.floor_progress or 0.0) + (limits.plan_turns or 100) / 1000

    return of


@cache
def _load_difficulty() -> dict[tuple[str, int], float]:
    """Map (family, task number) to 1 minus the mean of success rate and progress rate of eight published models."""
    path = find_published_folder() / "task_difficulty.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return {
            (row["family"], int(row["task"])): 1
            - (float(row["mean_progress"]) + float(row["mean_success"])) / 2
            for row in csv.DictReader(file)
        }


def selected_tasks(
    specs: Mapping[str, EnvSpec], selection: SelectionConfig, data: Path | None, load: Load = family_tasks
) -> tuple[Mapping[str, Sequence[Task]], dict[str, int]]:
    """Return family -> tasks, and for `--subset` task id -> number of tasks that it represents. Raises UserError."""
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
        raise UserError("--subset chooses the tasks itself; leave out --limit and --draw")
    held_out = {family: own for family, own in tasks.items() if specs[family].held_out}
    wanted = {
        family: spec.suites.expected[selection.suite]
        for family, spec in specs.items()
        if spec.held_out and selection.suite in spec.suites.expected
    }
    if not wanted or {family: len(own) for family, own in held_out.items()} != wanted:
        raise UserError(
            "--subset represents the whole held-out score"
            + ("; leave out --tasks" if wanted else f", which suite {selection.suite} does not have")
        )
    difficulty = make_difficulty(selection.suite, selection.suite_seed)
    stands_for = choose_subset(held_out, selection.subset, difficulty)
    return {f: [task for task in own if task.id in stands_for] for f, own in held_out.items()}, stands_for
