"""Compute intervals and tests of means over trainings that differ only in their seed."""

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
    """Components of the variance of a mean over trainings and tasks."""

    trainings: float
    """Part from the choice of seeds, including `attempts`: variance of the trainings' means / number of trainings."""
    tasks: float
    """Part from the choice of tasks, including `attempts`: variance of the tasks' means / number of tasks."""
    attempts: float
    """Part that neither the training nor the task explains, for example from the sampling of replies."""
    count: int


def seed_error(families: Sequence[Scores]) -> SeedError:
    """Split the variance of the mean by a two-way analysis (trainings x tasks) in each family. Needs two trainings."""
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

    The total variance is trainings + tasks - attempts (see `SeedError`), as in medical studies where several readers
    judge the same cases (Obuchowski & Rockette, Communications in Statistics 24 (1995) 285-308). The quantile is that
    of Student's t with the degrees of freedom of Hillis (Statistics in Medicine 26 (2007) 596-619).
    """
    error = seed_error(scores)
    total = error.trainings + max(0.0, error.tasks - error.attempts)
    freedom = total**2 * (error.count - 1) / error.trainings**2 if error.trainings else inf
    low, high = _Widening(total, error.tasks, freedom).of(ends, mean)
    return max(0.0, low), min(1.0, high)


@dataclass(frozen=True)
class _Widening:
    """The variances from which an interval over tasks is widened to an interval over trainings and tasks."""

    variance: float
    """Total variance of the mean over trainings and tasks."""
    tasks: float
    """Variance from tasks, which the interval over tasks already includes."""
    freedom: float

    @property
    def quantile(self) -> float:
        return float(stdtrit(self.freedom, 0.975)) if self.freedom < inf else Z_95

    def of(self, ends: Interval, mean: float) -> Interval:
        """Widen each limit of `ends` by the variance that `ends` does not include, as in MOVER (Zou & Donner,
        Statistics in Medicine 27 (2008) 1693-1702): an interval near 0 or 1 stays asymmetric. The result is never
        narrower than `ends`."""
        extra = sqrt(max(0.0, self.quantile**2 * self.variance - Z_95**2 * self.tasks))
        return mean - hypot(mean - ends[0], extra), mean + hypot(ends[1] - mean, extra)


@dataclass(frozen=True)
class TrainingsTest:
    """Student's t test of a difference between means over trainings. `ends`: the interval of the difference over
    tasks."""

    difference: float
    widening: _Widening

    def interval(self, ends: Interval) -> Interval:
        """Widen `ends`, an interval over tasks or kinds of tasks, by the variance between trainings, within -1..1."""
        low, high = self.widening.of(ends, self.difference)
        return max(-1.0, low), min(1.0, high)

    def standard_error(self, ends: Interval) -> float:
        """Return |difference - end of `interval` nearer to 0| / quantile, so that `p` agrees with `interval`."""
        low, high = self.widening.of(ends, self.difference)
        reach = self.difference - low if self.difference > 0 else high - self.difference
        return reach / self.widening.quantile

    def p(self, ends: Interval) -> float:
        """Return the two-sided p, which is below 0.05 if and only if `interval` excludes 0."""
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
    """Test the difference second - first over the same tasks in each family; `first` or `second` needs two trainings.

    The variance between trainings is pooled over `first` and `second`, and the test uses its degrees of freedom.
    Hillis's degrees of freedom are larger: with two or three seeds, 8 to 14 % of comparisons of equally good training
    methods would be significant (benchmarks/coverage_trainings.py). `paired`: both sides are the same trainings (for
    example with and without a perturbation). `alone`: a side with one run is one training, with the variance of the
    other side; if False, it is a model without training seeds, which has no variance between trainings.
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
