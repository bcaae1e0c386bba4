"""Read the range of a task: the floor is the score of random actions, the ceiling that of the best known plan.

`results/reference/<suite>.csv` has one row per task, so that a run over a part of a suite is compared with the floor
and ceiling of that part. benchmarks/audit.py writes these files.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import Any

from pydantic import TypeAdapter

from evalharness import stats
from evalharness.base.paths import ranges_folder
from evalharness.envs.base import MAX_TURNS
from evalharness.records.summary import Reference


@dataclass(frozen=True)
class TaskRange:
    """The range of one task with a limit of `max_turns`. Rates are fractions 0..1."""

    task_id: str
    task_hash: str
    difficulty: str
    plan_turns: int | None
    """Turns of the shortest known plan that succeeds by the label, at any length; None if no plan is known."""
    ceiling_success: float
    ceiling_progress: float
    """Highest progress of a known plan within the limit."""
    floor_success: float | None
    floor_progress: float | None
    """Mean of a uniformly random choice among valid actions, over `floor_samples` attempts. The random choice sees the
    list of valid actions at every turn; a model does not."""
    floor_samples: int
    label_agrees: bool
    """Whether label and simulator agree at the end of every reference plan."""
    why: str
    """If they disagree: the plan, and the subgoals (numbers from 0) that were never completed."""
    labels: str = ""
    """Source of the task's labels, as in `Task.labels`; empty if not recorded."""
    floor_progress_sd: float | None = None
    """Sample standard deviation of the attempts' progress; None if not recorded."""
    max_turns: int = MAX_TURNS
    """Turn limit of floor and ceiling; they are not valid for another limit."""

    def floor_variance(self, measure: str) -> float | None:
        """Return the squared standard error of `floor_success` or `floor_progress`; None with fewer than two attempts.

        Success is binary, so its mean gives its variance. The variance of progress comes from the recorded standard
        deviation. If none is recorded, use the largest possible variance with this mean, that of a binary value
        (Bhatia & Davis, The American Mathematical Monthly 107 (2000) 353-357).
        """
        mean = self.floor_success if measure == "success" else self.floor_progress
        if mean is None or self.floor_samples < 2:
            return None
        if measure == "progress" and self.floor_progress_sd is not None:
            return self.floor_progress_sd**2 / self.floor_samples
        return mean * (1 - mean) / (self.floor_samples - 1)


_UNKNOWN = {"plan_turns": None, "floor_success": None, "floor_progress": None, "why": ""}
"""Values of empty cells, for columns without a default."""


@cache
def load_ranges(suite: str, suite_seed: int = 0) -> tuple[TaskRange, ...]:
    """Return the stored ranges of a suite; none for the open suite of another seed. A task has one range for each turn
    limit, and for each release of its game, identified by the content hash."""
    path = ranges_folder() / f"{suite}.csv"
    if not path.exists() or (suite == "open" and suite_seed != 0):
        return ()
    with path.open(newline="", encoding="utf-8") as file:
        rows = [
            {**_UNKNOWN, **{name: text for name, text in row.items() if text}} for row in csv.DictReader(file)
        ]
    return tuple(TypeAdapter(list[TaskRange]).validate_python(rows))


PUBLISHED_SUITE = "agentboard"
CHANGED = "changed"
"""Added to the source of labels if a played task is not the published one."""


def mark_changed(labels: Mapping[str, str], task_hashes: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return family -> source of labels (`Manifest.labels`). Add `changed` if a task's content hash is not that of the
    published suite. A task without public labels is compared only if its labels have the same source.
    """
    ranges, changed = {row.task_id: row for row in load_ranges(PUBLISHED_SUITE)}, set()
    known = {task_id.split("/")[0] for task_id in ranges}
    for task_id, sha in task_hashes:
        family, suite = task_id.split("/")[:2]
        if suite != PUBLISHED_SUITE or family not in known:
            continue
        row = ranges.get(task_id)
        if row is None or (row.task_hash != sha and row.labels in labels.get(family, "").split(",")):
            changed.add(family)
    return {family: f"{who},{CHANGED}" if family in changed else who for family, who in labels.items()}


def changed_families(labels: Mapping[str, str], titles: Mapping[str, str]) -> str:
    """Return the titles of the families that `mark_changed` marked."""
    return ", ".join(
        titles.get(family, family) for family, who in labels.items() if CHANGED in who.split(",")
    )


def chance_corrected(score: float, floor: float, ceiling: float) -> float | None:
    """Return (score - floor) / (ceiling - floor): 0 is the score of random actions, 1 that of the best known plans.

    Return None if the ceiling is not above the floor.
    """
    return (score - floor) / (ceiling - floor) if ceiling > floor else None


def family_range(
    task_hashes: Sequence[tuple[str, str]],
    ranges: Iterable[TaskRange],
    rates: Mapping[str, Any],
    max_turns: int = MAX_TURNS,
) -> Reference | None:
    """Return floor, ceiling and chance-corrected rates over the played tasks (id and content hash of each).

    Return None unless every task has a stored range for the same content and turn limit.
    """
    stored = {(row.task_id, row.task_hash): row for row in ranges if row.max_turns == max_turns}
    known = [stored[task] for task in task_hashes if task in stored]
    return corrected_rates(known, rates) if known and len(known) == len(task_hashes) else None


def corrected_rates(known: Sequence[TaskRange], rates: Mapping[str, Any]) -> Reference:
    """Return the mean floor and ceiling of the tasks, and the chance-corrected rates; None for an unknown rate.

    `floor_se`: standard errors of the floors. `chance_corrected_ci95` combines them with the rate's own interval
    (`rates[RATE_ci95]`); None if one of them is unknown. `known` may list a task once per sample.
    """
    result: dict[str, Any] = {
        "floor": {}, "floor_se": {}, "ceiling": {}, "chance_corrected": {}, "chance_corrected_ci95": {}
    }  # fmt: skip
    for rate, name in (("success_rate", "success"), ("progress_rate", "progress")):
        ceiling = sum(getattr(row, f"ceiling_{name}") for row in known) / len(known)
        floors = [getattr(row, f"floor_{name}") for row in known]
        floor = None if None in floors else sum(floors) / len(floors)
        error = _floor_error(known, name)
        result["ceiling"][rate] = ceiling
        result["floor"][rate] = floor
        result["floor_se"][rate] = error
        score = rates.get(rate)
        result["chance_corrected"][rate] = (
            None if floor is None or score is None else chance_corrected(score, floor, ceiling)
        )
        result["chance_corrected_ci95"][rate] = corrected_interval(
            score, rates.get(f"{rate}_ci95"), floor, error, ceiling, attempts(known)
        )
    return Reference(**result)


def attempts(known: Iterable[TaskRange]) -> int:
    """Return the number of random attempts at all these tasks."""
    return sum({row.task_id: row.floor_samples for row in known}.values())


def _floor_error(known: Sequence[TaskRange], measure: str) -> float | None:
    times = Counter(row.task_id for row in known)
    total = 0.0
    for row in {row.task_id: row for row in known}.values():
        variance = row.floor_variance(measure)
        if variance is None:
            return None
        total += times[row.task_id] ** 2 * variance
    return sqrt(total) / len(known)


def corrected_interval(
    score: float | None,
    limits: tuple[float, float] | None,
    floor: float | None,
    floor_error: float | None,
    ceiling: float | None,
    floor_attempts: int,
) -> tuple[float, float] | None:
    """Return the 95 % interval of the chance-corrected score. It combines the interval of the score with the error of
    the floor. Return None if one of them is unknown, or if the ceiling is not above the floor."""
    if score is None or limits is None or floor is None or floor_error is None or ceiling is None:
        return None
    floor_limits = stats.limits_of_mean(floor, floor_error, floor_attempts)
    interval = stats.corrected_limits(score, (limits[0], limits[1]), floor, floor_limits, ceiling)
    return interval if ceiling > floor else None
