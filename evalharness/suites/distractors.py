"""Tasks of training suites with objects and rooms that the goal does not need, proven like every open task.

An environment adds them (`TaskSuites.distract`). What is proven is frozen in a folder of its own, in which no
evaluation looks for a suite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.paths import home_folder
from evalharness.envs import specs
from evalharness.envs.base import MAX_TURNS, EnvSpec, Task
from evalharness.suites.excluded import task_forms
from evalharness.suites.open import Proven, UnprovenTaskError, freeze, prove, read_frozen

MOST = 50
LEFT_OUT = "no place for the distractors, or not proven with them"
"""Why a task is left out."""


def check_distractors(families: Sequence[EnvSpec], count: int) -> None:
    """Raises UserError where a family cannot have them."""
    if not 0 <= count <= MOST:
        raise UserError(f"--distractors {count}: give 0 to {MOST}")
    cannot = [spec.title for spec in families if spec.suites.distract is None]
    if count and cannot:
        able = ", ".join(family for family, spec in specs().items() if spec.suites.distract is not None)
        raise UserError(
            f"--distractors: the worlds of {', '.join(cannot)} are fixed; families that take them: {able}"
        )


def with_distractors(
    spec: EnvSpec, suite_seed: int, tasks: Sequence[Task], count: int, note: Callable[[str], None]
) -> list[Task]:
    """The tasks of an open suite with `count` distractors, without those that have no place for them or that the oracle
    does not solve within the turns of an open task. Made once, which takes as long as the suite. Raises UserError."""
    if not count:
        return list(tasks)
    folder = _folder(suite_seed, count)
    known = {task.content_hash: task for task in tasks}
    try:
        rows = read_frozen(spec, suite_seed, folder) or []
    except UserError:  # damaged, or of another version
        rows = []
    if not rows or any(row.task.payload["without_distractors"] not in known for row in rows):
        note(f"adding {count} distractors to the tasks of suite seed {suite_seed}: {spec.title} (once)")
        rows = _proven(spec, tasks, count)
        freeze(spec, suite_seed, rows, folder)
    found = []
    for row in rows:
        base = known[row.task.payload["without_distractors"]]
        # So that the task is known again by what it was made of, too.
        payload = {**row.task.payload, "forms_without_distractors": task_forms(spec, base)}
        found.append(replace(row.task, payload=payload, suite_seed=base.suite_seed))
    return found


def _folder(suite_seed: int, count: int) -> Path:
    return home_folder() / "training-suites" / f"open-{suite_seed}-distractors-{count}"


def _proven(spec: EnvSpec, tasks: Sequence[Task], count: int) -> list[Proven]:
    assert spec.suites.distract is not None
    environment = spec.make(None)
    rows: list[Proven] = []
    try:
        for base in tasks:
            if (task := spec.suites.distract(base, count)) is None:
                continue
            marks = {"distractors": count, "without_distractors": base.content_hash}
            task = replace(task, payload={**task.payload, **marks})
            try:
                rows.append(Proven(task, prove(environment, task, min(spec.own.max_turns, MAX_TURNS))))
            except UnprovenTaskError:
                continue
    finally:
        environment.close()
    return rows
