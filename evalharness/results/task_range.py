"""Read the floor and the ceiling of each task: the scores of random actions and of the best known plan.

`results/reference/<suite>.csv` has one row per task, so a run over some tasks of a suite is compared with the floor and
ceiling of exactly these tasks. benchmarks/audit.py writes these files.
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
    """The floor and the ceiling of one task with turn limit `max_turns`. Rates are fractions 0..1."""

    task_id: str
    task_hash: str
    difficulty: str
    plan_turns: int | None
    """Turns of the shortest known plan that completes all subgoals, even if above `max_turns`; None: no known plan."""
    ceiling_success: float
    ceiling_progress: float
    """Highest progress that a known plan reaches within `max_turns`."""
    floor_success: float | None
    floor_progress: float | None
    """Mean progress of a policy that chooses uniformly among the valid actions, over `floor_samples` attempts. This
    policy sees the list of valid actions at every turn; a model does not."""
    floor_samples: int
    label_agrees: bool
    """Whether subgoal labels and simulator agree on success at the end of every known plan."""
    why: str
    """If labels and simulator disagree: the plan, and the subgoals (counted from 0) that it never completes."""
    labels: str = ""
    """Source of the task's subgoal labels, as in `Task.labels`; empty if not recorded."""
    floor_progress_sd: float | None = None
    """Sample standard deviation of progress over the random attempts; None if not recorded."""
    max_turns: int = MAX_TURNS
    """Turn limit for which floor and ceiling were computed. They are not valid for another limit."""

    def floor_variance(self, measure: str) -> float | None:
        """Return the squared standard error of `floor_success` or `floor_progress`; None with fewer than two attempts.

        The variance of success follows from its mean, because success is binary. The variance of progress follows from
        `floor_progress_sd`. If this is not recorded, use the variance of a binary value, the largest with this mean
        (Bhatia & Davis, The American Mathematical Monthly 107 (2000) 353-357).
        """
        mean = self.floor_success if measure == "success" else self.floor_progress
        if mean is None or self.floor_samples < 2:
            return None
        if measure == "progress" and self.floor_progress_sd is not None:
            return self.floor_progress_sd**2 / self.floor_samples
        return mean * (1 - mean) / (self.floor_samples - 1)


_UNKNOWN = {"plan_turns": None, "floor_success": None, "floor_progress": None, "why": ""}
"""Values of empty cells of the CSV file in columns for which `TaskRange` has no default."""


@cache
def load_ranges(suite: str, suite_seed: int = 0) -> tuple[TaskRange, ...]:
    """Return the stored ranges, from floor to ceiling, of the scores in a suite. The open suite has them only for seed
    0. A task has one range per turn limit and release of its game; the content hash identifies the release."""
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
"""Added to a family's source of labels if a played task differs from the published task."""


def mark_changed(labels: Mapping[str, str], task_hashes: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return `labels` (family -> source of subgoal labels). Add `changed` to a family if the content hash of a task
    differs from the hash in the published suite. Tasks whose subgoal labels have another source are not compared.
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


def list_changed_families(labels: Mapping[str, str], titles: Mapping[str, str]) -> str:
    """Return the titles of the families with `changed` among their sources of labels, joined with commas."""
    return ", ".join(
        titles.get(family, family) for family, who in labels.items() if CHANGED in who.split(",")
    )


def chance_corrected(score: float, floor: float, ceiling: float) -> float | None:
    """Return (score - floor) / (ceiling - floor): 0 for random actions, 1 for the best known plans.

    Return None if the ceiling is not above the floor.
    """
    return (score - floor) / (ceiling - floor) if ceiling > floor else None


def family_range(
    task_hashes: Sequence[tuple[str, str]],
    ranges: Iterable[TaskRange],
    rates: Mapping[str, Any],
    max_turns: int = MAX_TURNS,
) -> Reference | None:
    """Return floor, ceiling and chance-corrected rates over the played tasks. `task_hashes`: (task id, content hash).

    Return None if a task has no stored range with this content hash and turn limit.
    """
    stored = {(row.task_id, row.task_hash): row for row in ranges if row.max_turns == max_turns}
    known = [stored[task] for task in task_hashes if task in stored]
    return correct_rates(known, rates) if known and len(known) == len(task_hashes) else None


def correct_rates(known: Sequence[TaskRange], rates: Mapping[str, Any]) -> Reference:
    """Return the mean floor and ceiling of the tasks, and the chance-corrected rates; None for an unknown rate.

    `floor_se` has the standard errors of the floors. `chance_corrected_ci95` combines these errors with the interval of
    the rate (`rates[RATE_ci95]`); it is None if error or interval is unknown. `known` may have a task once per sample.
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
        result["chance_corrected_ci95"][rate] = correct_interval(
            score, rates.get(f"{rate}_ci95"), floor, error, ceiling, attempts(known)
        )
    return Reference(**result)


def attempts(known: Iterable[TaskRange]) -> int:
    """Return the number of random attempts from which the floors of these tasks were measured."""
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


def correct_interval(
    score: float | None,
    limits: tuple[float, float] | None,
    floor: float | None,
    floor_error: float | None,
    ceiling: float | None,
    floor_attempts: int,
) -> tuple[float, float] | None:
    """Return the 95 % interval of the chance-corrected score. It combines the interval of the score with the error of
    the floor. Return None if an argument is None, or if the ceiling is not above the floor."""
    if score is None or limits is None or floor is None or floor_error is None or ceiling is None:
        return None
    floor_limits = stats.limits_of_mean(floor, floor_error, floor_attempts)
    interval = stats.correct_limits(score, (limits[0], limits[1]), floor, floor_limits, ceiling)
    return interval if ceiling > floor else None
