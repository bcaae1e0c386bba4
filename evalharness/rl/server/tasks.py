"""The tasks for a trainer: a training and a validation split, without tasks in common, and without evaluation tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal

from evalharness.base.errors import UserError
from evalharness.envs.base import EnvSpec, Suite, Task
from evalharness.suites.excluded import PUBLISHED, Excluded, load_excluded
from evalharness.suites.open import FROZEN_SEED
from evalharness.suites.selection import family_tasks

Split = Literal["train", "validation"]
SPLITS: tuple[Split, ...] = ("train", "validation")
Note = Callable[[str], None]


class UnknownTaskError(Exception):
    """A client asked for a split, an index or a task that is not served."""


@dataclass(frozen=True)
class ServedTask:
    """One task of a split."""

    task: Task
    split: Split = "train"


@dataclass(frozen=True)
class RequestedTasks:
    """The tasks that a person asks to serve."""

    families: Sequence[EnvSpec]
    train_seeds: Sequence[int]
    validation_seeds: Sequence[int]
    suite: Suite = "open"
    """Suite of the split `train`: `open` or a suite made for training. All other suites are for evaluation."""
    allow_eval_tasks: bool = False


@dataclass
class TaskTable:
    """The tasks of both splits, ordered by family, suite seed and index."""

    splits: Mapping[str, Sequence[ServedTask]]
    evaluated: bool = False
    """Whether the table contains evaluation tasks."""
    seed: int = 0
    """Seed of the shuffled order."""
    _turns: dict[tuple[str | None, ...], int] = field(default_factory=dict)

    def split(self, name: str) -> Sequence[ServedTask]:
        if name not in self.splits:
            more = "; start the server with --validation-seeds 1001" if name == "validation" else ""
            raise UnknownTaskError(f"no split {name!r}; there are: {', '.join(self.splits)}{more}")
        return self.splits[name]

    def at(self, split: str, index: int) -> ServedTask:
        tasks = self.split(split)
        if not 0 <= index < len(tasks):
            raise UnknownTaskError(f"no task {index} in {split!r}, which has 0-{len(tasks) - 1}")
        return tasks[index]

    def find_task(self, split: str, task_id: str) -> ServedTask:
        """Return the task by its name, which includes the suite seed, or by its id if the id is unique in the split."""
        tasks = self.split(split)
        matches = [served for served in tasks if served.task.name == task_id]
        matches = matches or [served for served in tasks if served.task.id == task_id]
        if len(matches) > 1:
            raise UnknownTaskError(
                f"several tasks {task_id!r} in {split!r}: {', '.join(each.task.name for each in matches)}"
            )
        if not matches:
            raise UnknownTaskError(f"no task {task_id!r} in {split!r}")
        return matches[0]

    def draw_task(
        self, split: str, seed: int, family: str | None = None, kind: str | None = None
    ) -> ServedTask:
        """Return a random task, determined by the seed."""
        tasks = self._of(split, family, kind)
        return tasks[Random(f"task/{split}/{seed}").randrange(len(tasks))]

    def next(self, split: str, family: str | None = None, kind: str | None = None) -> ServedTask:
        """Return the next task in a shuffled order, for clients that do not choose a task."""
        tasks = self._of(split, family, kind)
        turn = self._turns.get((split, family, kind), 0)
        self._turns[split, family, kind] = turn + 1
        Random(f"order/{split}/{self.seed}/{turn // len(tasks)}").shuffle(tasks)
        return tasks[turn % len(tasks)]

    def _of(self, split: str, family: str | None, kind: str | None) -> list[ServedTask]:
        tasks = [served for served in self.split(split) if family in (None, served.task.family)]
        chosen = [served for served in tasks if kind in (None, served.task.kind)]
        if not chosen:
            kinds = ", ".join(sorted({served.task.kind for served in tasks})) or "none"
            raise UnknownTaskError(
                f"no tasks of {family or 'any family'!r} and {kind or 'any kind'!r} in {split!r}; kinds: {kinds}"
            )
        return chosen


def refuse_evaluations(request: RequestedTasks) -> list[str]:
    """Return a phrase for each requested suite or seed that evaluations use. Raises UserError if there is one and
    evaluation tasks are not allowed, or if both splits have the same seed."""
    if both := sorted({*request.train_seeds} & {*request.validation_seeds}):
        raise UserError(
            f"suite seed {both[0]} is in --train-seeds and in --validation-seeds; give each its own seeds"
        )
    for_training = all(request.suite in spec.suites.training for spec in request.families)
    reserved = [] if request.suite == "open" or for_training else [f"the published suite {request.suite!r}"]
    if FROZEN_SEED in (*request.train_seeds, *request.validation_seeds):
        reserved.append(f"suite seed {FROZEN_SEED}, which every open evaluation plays")
    if reserved and not request.allow_eval_tasks:
        raise UserError(
            f"not served for training: {' and '.join(reserved)}. A score on training tasks says little. "
            "Give other seeds (--train-seeds 1-8), or --allow-eval-tasks if that is what you want"
        )
    return reserved


def load_table(request: RequestedTasks, data: Path | None, note: Note, seed: int = 0) -> TaskTable:
    """Load both splits; `seed` shuffles their order. A suite that is not stored yet is generated (some minutes).

    Leave out tasks that, up to renaming, equal a task of suite seed 0 or of the published suite. If two suites have
    equal tasks, leave out the later one; validation suites come first. Raises UserError.
    """
    evaluated = refuse_evaluations(request)
    # Without validation seeds there is no split `validation`.
    splits: dict[str, list[ServedTask]] = {s: [] for s in SPLITS if s == "train" or request.validation_seeds}
    for spec in request.families:
        excluded = None if evaluated else load_excluded(spec, data)
        published = {} if excluded is None else excluded.compared.get(PUBLISHED, {})
        if published and published["tasks"] is None and not published["forms_kept"]:
            note(
                f"{spec.title}: the published suite is missing, so its tasks cannot be excluded, only those of suite "
                "seed 0 (give its folder with --data DIR)"
            )
        for suite_seed in request.validation_seeds:
            tasks = family_tasks(spec, "open", data, suite_seed)
            splits["validation"] += _filter_tasks("validation", tasks, excluded)
        if request.suite == "open":
            for suite_seed in request.train_seeds:
                tasks = family_tasks(spec, "open", data, suite_seed)
                splits["train"] += _filter_tasks("train", tasks, excluded)
        else:
            tasks = family_tasks(spec, request.suite, data, FROZEN_SEED)
            splits["train"] += _filter_tasks("train", tasks, excluded)
        counts = ", ".join(
            f"{sum(served.task.family == spec.family for served in tasks)} for {split}"
            for split, tasks in splits.items()
        )
        refused = {} if excluded is None else excluded.refused
        left_out = "".join(f", {count} left out: {why}" for why, count in sorted(refused.items()))
        note(f"{spec.title}: {counts}{left_out}")
    if evaluated:
        note(
            f"WARNING: {' and '.join(evaluated)}: served for training (--allow-eval-tasks). Do not evaluate the "
            "trained model on them; each episode's state has `evaluation_tasks: true`"
        )
    for split, served in splits.items():
        if not served:
            raise UserError(f"no task is left for {split}: give more seeds with --{split}-seeds")
    return TaskTable(splits, bool(evaluated), seed)


def _filter_tasks(split: Split, tasks: Sequence[Task], excluded: Excluded | None) -> list[ServedTask]:
    return [ServedTask(task, split) for task in tasks if excluded is None or excluded.check(task) is None]
