"""The mean over trainings that differ in their seed alone, played on the same tasks: both are samples, and crossed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, inf, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from evalharness.stats.intervals import Z_95, Interval

Scores = NDArray[np.float64]
"""Trainings x tasks of one family, 0..1."""


@dataclass(frozen=True)
class SeedError:
    """Variances of the mean over trainings and tasks."""

    trainings: float
    """Of the trainings' means, over their number: other seeds, the attempts' own part in it."""
    tasks: float
    """Of the tasks' means: other tasks, the same part in it again."""
    attempts: float
    """That part: what neither training nor task explains."""
    count: int
    """Trainings."""


def seed_error(families: Sequence[Scores]) -> SeedError:
    """Two-way random effects; differences between families are no error. Two trainings at least."""
    count, n = families[0].shape[0], sum(scores.shape[1] for scores in families)
    means = sum(scores.sum(axis=1) for scores in families) / n
    tasks = attempts = 0.0
    for scores in families:
        size = scores.shape[1]
        if size < 2:
            continue
        by_task, by_training = scores.mean(axis=0), scores.mean(axis=1)
        rest = scores - by_task - by_training[:, None] + scores.mean()
        tasks += size * float(by_task.var(ddof=1)) / n**2
        attempts += size * float((rest**2).sum()) / ((count - 1) * (size - 1)) / (count * n**2)
    return SeedError(float(np.var(means, ddof=1)) / count, tasks, attempts, count)


def difference_over_trainings(
    ends: Interval, difference: float, first: Sequence[Scores], second: Sequence[Scores]
) -> Interval:
    """`ends`, an interval over tasks of second - first, widened by what independent trainings on both sides add.

    The same tasks on both sides, family by family; one of the two may have one training, which adds nothing."""
    errors = [seed_error(found) for found in (first, second) if found[0].shape[0] > 1]
    deltas = [b.mean(axis=0) - a.mean(axis=0) for a, b in zip(first, second, strict=True)]
    n = sum(map(len, deltas))
    variance = sum(len(d) * float(d.var(ddof=1)) for d in deltas if len(d) > 1) / n**2
    return over_trainings(ends, difference, errors, variance, (-1.0, 1.0))


def over_trainings(
    ends: Interval, mean: float, errors: Sequence[SeedError], tasks: float, bound: Interval
) -> Interval:
    """`ends`, an interval over tasks alone, widened by what trainings add. `tasks`: the tasks' part of its variance.

    Variance: trainings + tasks - attempts, the analysis of several readers of the same cases (Obuchowski & Rockette,
    Communications in Statistics 24 (1995) 285-308), Student's t with the degrees of freedom of Hillis (Statistics in
    Medicine 26 (2007) 596-619). The excess over the tasks' own width is joined to each end as in MOVER (Zou & Donner,
    Statistics in Medicine 27 (2008) 1693-1702), so that an interval near 0 or 1 stays lopsided. `errors`: of each row
    that is in the mean, two for a difference. Never narrower than `ends`; within `bound`.
    """
    seeds = sum(error.trainings for error in errors)
    total = seeds + max(0.0, tasks - sum(error.attempts for error in errors))
    spread = sum(error.trainings**2 / (error.count - 1) for error in errors)
    freedom = total**2 / spread if spread else inf
    quantile = float(student.ppf(0.975, freedom)) if freedom < inf else Z_95
    extra = sqrt(max(0.0, quantile**2 * total - Z_95**2 * tasks))
    low, high = ends
    return max(bound[0], mean - hypot(mean - low, extra)), min(bound[1], mean + hypot(high - mean, extra))
