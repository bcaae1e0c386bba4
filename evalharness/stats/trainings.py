"""Compute means over trainings that differ only in their seed; trainings and tasks are crossed random effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, inf, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from evalharness.stats.intervals import Z_95, Interval

Scores = NDArray[np.float64]
"""Array of trainings x tasks of one family, 0..1."""
_POWER = 0.8


@dataclass(frozen=True)
class SeedError:
    """Variances of the mean over trainings and tasks."""

    trainings: float
    """Variance from the choice of seeds: variance of the trainings' means / their number. Includes `attempts`."""
    tasks: float
    """Variance from the choice of tasks: variance of the tasks' means / their number. Includes `attempts`."""
    attempts: float
    """Variance that neither the training nor the task explains."""
    count: int


def seed_error(families: Sequence[Scores]) -> SeedError:
    """Split the variance by two-way random effects within families. At least two trainings are needed."""
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


def mean_over_trainings(ends: Interval, mean: float, scores: Sequence[Scores]) -> Interval:
    """Widen `ends`, the interval of a rate over tasks, by the variance between trainings; keep it within 0..1.

    The variance is trainings + tasks - attempts, as in the analysis of several readers of the same cases (Obuchowski &
    Rockette, Communications in Statistics 24 (1995) 285-308). The quantile is Student's t with the degrees of freedom
    of Hillis (Statistics in Medicine 26 (2007) 596-619).
    """
    error = seed_error(scores)
    total = error.trainings + max(0.0, error.tasks - error.attempts)
    freedom = total**2 * (error.count - 1) / error.trainings**2 if error.trainings else inf
    low, high = _Widening(total, error.tasks, freedom).of(ends, mean)
    return max(0.0, low), min(1.0, high)


@dataclass(frozen=True)
class _Widening:
    """The amount by which trainings widen an interval over tasks."""

    variance: float
    """Variance of the mean over trainings and tasks."""
    tasks: float
    """The part of `variance` that the interval over tasks already contains."""
    freedom: float

    @property
    def quantile(self) -> float:
        return float(stdtrit(self.freedom, 0.975)) if self.freedom < inf else Z_95

    def of(self, ends: Interval, mean: float) -> Interval:
        """Add the variance that `ends` lacks to each limit, as in MOVER (Zou & Donner, Statistics in Medicine 27 (2008)
        1693-1702), so that an interval near 0 or 1 stays asymmetric. The result is never narrower than `ends`."""
        extra = sqrt(max(0.0, self.quantile**2 * self.variance - Z_95**2 * self.tasks))
        return mean - hypot(mean - ends[0], extra), mean + hypot(ends[1] - mean, extra)


@dataclass(frozen=True)
class TrainingsTest:
    """Student's t test of a difference between two means over trainings."""

    difference: float
    widening: _Widening

    def interval(self, ends: Interval) -> Interval:
        """Widen `ends`, an interval over tasks or kinds, by the variance between trainings; keep it within -1..1."""
        low, high = self.widening.of(ends, self.difference)
        return max(-1.0, low), min(1.0, high)

    def standard_error(self, ends: Interval) -> float:
        """Return the standard error, computed from the end of the interval that is nearer to 0."""
        low, high = self.widening.of(ends, self.difference)
        reach = self.difference - low if self.difference > 0 else high - self.difference
        return reach / self.widening.quantile

    def p(self, ends: Interval) -> float:
        """Return the two-sided p; it is below 0.05 if and only if `interval` excludes 0."""
        error = self.standard_error(ends)
        if error <= 0:
            return 1.0 if self.difference == 0 else 0.0
        return float(2 * stdtr(self.widening.freedom, -abs(self.difference) / error))

    def detectable(self, ends: Interval) -> float | None:
        """Return the smallest true difference that the test detects with 80 % power at 5 %, from its standard error
        (H. S. Bloom, Evaluation Review 19 (1995) 547-556); None if it is above 1."""
        reach = self.widening.quantile + float(stdtrit(self.widening.freedom, _POWER))
        smallest = reach * self.standard_error(ends)
        return smallest if smallest <= 1 else None


def compare_trainings(
    first: Sequence[Scores], second: Sequence[Scores], *, paired: bool = False, alone: bool = True
) -> TrainingsTest:
    """Test second - first over the same tasks, family by family; at least one side needs two trainings.

    The variance between trainings is pooled over both sides, and the test uses its degrees of freedom. Hillis's degrees
    of freedom, which add those of the tasks, would give a false positive in 8 to 14 % of tables of equal ways of
    training at two and three seeds (benchmarks/coverage_trainings.py). `paired`: compare training by training (for
    example under a perturbation). A side with one training gets the variance of the other side, unless `alone` is
    False: that side was not trained.
    """
    sizes = [scores.shape[1] for scores in first]
    deltas = [b.mean(axis=0) - a.mean(axis=0) for a, b in zip(first, second, strict=True)]
    n = sum(sizes)
    difference = sum(float(d.sum()) for d in deltas) / n
    tasks = sum(len(d) * float(d.var(ddof=1)) for d in deltas if len(d) > 1) / n**2
    if paired:
        error = seed_error([b - a for a, b in zip(first, second, strict=True)])
        trainings, attempts, freedom = error.trainings, error.attempts, error.count - 1
    else:
        counts = [side[0].shape[0] for side in (first, second)]
        errors = [seed_error(side) for side in (first, second) if side[0].shape[0] > 1]
        freedom = sum(error.count - 1 for error in errors)
        pooled = [
            sum((e.count - 1) * e.count * getattr(e, part) for e in errors) / freedom
            for part in ("trainings", "attempts")
        ]
        share = sum(1 / count for count in counts if count > 1 or alone)
        trainings, attempts = pooled[0] * share, pooled[1] * share
    variance = trainings + max(0.0, tasks - attempts)
    return TrainingsTest(difference, _Widening(variance, tasks, float(freedom)))
