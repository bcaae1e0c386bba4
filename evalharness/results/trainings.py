"""Runs of models that were trained alike but for the seed, read as one: the mean over trainings.

Its intervals hold the variance of seeds and of tasks (`evalharness.stats.trainings`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from evalharness.records.manifest import Manifest
from evalharness.results.repeats import differing, joined
from evalharness.results.score import ESTIMATED, HELD_OUT, POOLED
from evalharness.results.scored_run import ScoredRun
from evalharness.stats.intervals import Interval
from evalharness.stats.trainings import Scores, difference_over_trainings, over_trainings, seed_error

T = TypeVar("T")
SEED = "training_seed"
"""The label that says which."""


def join_trainings(runs: Sequence[ScoredRun]) -> ScoredRun | None:
    """None unless all say their seed, each another, and they differ in nothing but their model's weights."""
    seeds = [run.labels.get(SEED) for run in runs]
    if len(runs) < 2 or None in seeds or len(set(seeds)) < len(seeds):
        return None
    if any(
        key.partition(".")[0] not in ("model", "model_name")
        for run in runs[1:]
        for key in differing(runs[0], run)
    ):
        return None
    return replace(joined(runs), repeats=(), trainings=tuple(runs))


def in_cells(named: Iterable[tuple[Manifest, T]]) -> list[tuple[str | None, list[T]]]:
    """Runs of a study of training that are one entry: all that differ in the training's seed, or in the perturbation.

    (what tells the entry from the others, of a single one all that it is labelled with; its runs)
    """
    cells: dict[tuple[tuple[str, str], ...], list[T]] = {}
    for manifest, run in named:
        labels = {key: value for key, value in manifest.user_labels.items() if key != SEED}
        key = (*sorted(labels.items()), ("suite", manifest.suite_name), ("agent", manifest.config.agent_said))
        cells.setdefault(key, []).append(run)
    shared = (
        set.intersection(*map(set, cells)) if len(cells) > 1 else {pair for key in cells for pair in key[-2:]}
    )
    return [
        (" ".join(value for name, value in key if (name, value) not in shared) or None, runs)
        for key, runs in cells.items()
    ]


def seeds_of(run: ScoredRun) -> list[str]:
    return [each.labels[SEED] for each in run.trainings]


def _scores(run: ScoredRun, family: str, measure: str, tasks: set[str]) -> list[Scores]:
    """Of each family that `family` means, over `tasks`."""
    families = [family]
    if family in (HELD_OUT, ESTIMATED, POOLED):
        every = run.manifest.held_out if family == HELD_OUT else {run.tasks[task].family for task in tasks}
        families = sorted(every)
    found = []
    for name in families:
        listed = sorted(task for task in tasks if run.tasks[task].family == name)
        if listed:
            found.append(np.array([[getattr(r.tasks[t], measure) for t in listed] for r in run.trainings]))
    return found


def _played(run: ScoredRun) -> set[str]:
    """Tasks that every training has played."""
    return set.intersection(*(set(each.tasks) for each in run.trainings))


def interval_of(run: ScoredRun, family: str, measure: str, rate: float, ends: Interval) -> Interval:
    """Of a rate with the interval `ends` over tasks. As it is for a run of one training."""
    if not run.trainings or not (scores := _scores(run, family, measure, _played(run))):
        return ends
    error = seed_error(scores)
    return over_trainings(ends, rate, [error], error.tasks, (0.0, 1.0))


def difference_interval(
    first: ScoredRun, second: ScoredRun, family: str, measure: str, difference: float, ends: Interval
) -> Interval:
    """Of second - first, paired by task with the interval `ends` over tasks. Trainings that are the same on both sides
    are paired, too (a perturbation); others are independent."""
    if not (first.trainings or second.trainings):
        return ends
    pair = [run if run.trainings else replace(run, trainings=(run,)) for run in (first, second)]
    tasks = _played(pair[0]) & _played(pair[1])
    scores = [_scores(run, family, measure, tasks) for run in pair]
    if not scores[0]:
        return ends
    if _models(pair[0]) == _models(pair[1]) and len(pair[0].trainings) > 1:
        error = seed_error([b - a for a, b in zip(*scores, strict=True)])
        return over_trainings(ends, difference, [error], error.tasks, (-1.0, 1.0))
    return difference_over_trainings(ends, difference, scores[0], scores[1])


def _models(run: ScoredRun) -> list[Mapping[str, Any]]:
    return [each.manifest.identity.model for each in run.trainings]
