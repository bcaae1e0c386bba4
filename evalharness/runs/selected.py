"""The tasks that a run's options select."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.config.selection import SelectionConfig
from evalharness.envs.base import EnvSpec, Task
from evalharness.results.difficulty import difficulty_of
from evalharness.suites.selection import Load, family_tasks, select
from evalharness.suites.subset import subset_of


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
