"""The range of a task, from floor to ceiling: what chance reaches on a task, and what the best known plan reaches.

Kept a row a task under `results/reference/<suite>.csv`, so that a run over any part of a suite is compared with the
floor and ceiling of just that part. Made by benchmarks/audit.py.
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
    """One task under the limit of `max_turns`. Rates are fractions 0..1."""

    task_id: str
    task_hash: str
    difficulty: str
    plan_turns: int | None
    """Turns of the shortest known plan that succeeds by the label, however long; None when none is known."""
    ceiling_success: float
    ceiling_progress: float
    """The best that a known plan reaches within the limit."""
    floor_success: float | None
    floor_progress: float | None
    """Means of a uniformly random choice among valid actions over `floor_samples` attempts. The choice is handed the
    list of valid actions at every turn, which a model is not."""
    floor_samples: int
    label_agrees: bool
    """No reference plan ends where label and simulator disagree."""
    why: str
    """Where they differ: which plan, which subgoals (numbers from 0) were never completed."""
    labels: str = ""
    """Who wrote the task's labels, as `Task.labels`; empty where it was not noted."""
    floor_progress_sd: float | None = None
    """Standard deviation (of a sample) of the attempts' progress; None where it was not noted."""
    max_turns: int = MAX_TURNS
    """Floor and ceiling hold for this turn limit only."""

    def floor_variance(self, measure: str) -> float | None:
        """Squared standard error of `floor_success` or `floor_progress`; None where fewer than two attempts were made.

        Success is yes or no: its mean says how it varied. So does the noted deviation of progress. Where none was
        noted, the most that attempts with this mean can vary stands for it: fractions vary no more than yes and no do
        (Bhatia & Davis, The American Mathematical Monthly 107 (2000) 353-357).
        """
        mean = self.floor_success if measure == "success" else self.floor_progress
        if mean is None or self.floor_samples < 2:
            return None
        if measure == "progress" and self.floor_progress_sd is not None:
            return self.floor_progress_sd**2 / self.floor_samples
        return mean * (1 - mean) / (self.floor_samples - 1)


_UNKNOWN = {"plan_turns": None, "floor_success": None, "floor_progress": None, "why": ""}
"""What an empty cell stands for, in columns without a default."""


@cache
def load_ranges(suite: str, suite_seed: int = 0) -> tuple[TaskRange, ...]:
    """Return the stored ranges of a suite; none for an open suite of another seed. A task has one for each turn limit,
    and for each release of its game, by content hash."""
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
"""Beside whose labels they are: a task that was played is not the published one."""


def mark_changed(labels: Mapping[str, str], task_hashes: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Family -> whose labels (`Manifest.labels`), with `changed` where a task of the published suite has another
    content hash than the published one. A task without public labels is compared if the labels are of the same source.
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
    """The titles of families whose labels `mark_changed` marked."""
    return ", ".join(
        titles.get(family, family) for family, who in labels.items() if CHANGED in who.split(",")
    )


def chance_corrected(score: float, floor: float, ceiling: float) -> float | None:
    """(score - floor) / (ceiling - floor): 0 is what chance gives, 1 what the best known plans give.

    None where there is no room between the two.
    """
    return (score - floor) / (ceiling - floor) if ceiling > floor else None


def family_range(
    task_hashes: Sequence[tuple[str, str]],
    ranges: Iterable[TaskRange],
    rates: Mapping[str, Any],
    max_turns: int = MAX_TURNS,
) -> Reference | None:
    """Floor, ceiling and chance-corrected rates over the tasks played (id and content hash of each).

    None unless every one of them has a stored range of the same content and turn limit.
    """
    stored = {(row.task_id, row.task_hash): row for row in ranges if row.max_turns == max_turns}
    known = [stored[task] for task in task_hashes if task in stored]
    return corrected_rates(known, rates) if known and len(known) == len(task_hashes) else None


def corrected_rates(known: Sequence[TaskRange], rates: Mapping[str, Any]) -> Reference:
    """Mean floor and ceiling of the tasks, and the chance-corrected rates; None for a rate that is not known.

    `floor_se`: standard errors of the floors, of so many attempts. `chance_corrected_ci95` holds them and the rate's
    own interval (`rates[RATE_ci95]`); None where either is not known. A task may be listed once for each sample of it.
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
    """Random attempts at all of these tasks together."""
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
    """95 % interval of the chance-corrected score; it combines the interval of the score with the uncertainty of the
    floor. None where one of them is not known, or where there is no room between floor and ceiling."""
    if score is None or limits is None or floor is None or floor_error is None or ceiling is None:
        return None
    floor_limits = stats.limits_of_mean(floor, floor_error, floor_attempts)
    found = stats.corrected_limits(score, (limits[0], limits[1]), floor, floor_limits, ceiling)
    return found if ceiling > floor else None
