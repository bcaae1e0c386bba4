"""Scores over parts of several families: of a whole suite from tasks chosen by difficulty, and of tasks pooled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evalharness.stats.intervals import Interval
from evalharness.stats.score_interval import checked, limits

_LEAST_GAIN = 0.4
"""The order's gain in variance is itself estimated from few tasks: no more than this is believed."""


def subset_interval(strata: Sequence[Sequence[float]], of: int, confidence: float = 0.95) -> Interval:
    """For the mean over `of` tasks, from the values 0..1 of some of them: a stratum a family, each in the order of
    difficulty in which it was cut into stretches of equal length.

    `stratified_score` with its variance times the share of tasks that were not played, and times what the order gains:
    the mean squared difference of neighbours over twice the variance, as for systematic samples (Wolter, Introduction
    to Variance Estimation, 2nd ed., section 8.2). How often it holds the truth: benchmarks/coverage_subset.py.
    """
    values = [np.asarray(stratum, dtype=np.float64) for stratum in strata]
    played = sum(len(stratum) for stratum in values)
    spread = sum(len(v) * float(v.var(ddof=1)) for v in values if len(v) > 1)
    steps = sum(len(v) * float((np.diff(v) ** 2).mean()) / 2 for v in values if len(v) > 1)
    gain = min(1.0, max(_LEAST_GAIN, steps / spread)) if spread > 0 else 1.0
    low, high = limits(
        [checked(stratum, 0.0) for stratum in strata], confidence, inflation=gain * (1 - played / of)
    )
    return float(low), float(high)


def pooled_interval(intervals: Sequence[tuple[int, float, Interval]]) -> Interval:
    """For the mean over the tasks of several families, from each family's (tasks, rate, 95 % interval).

    MOVER (Zou & Donner, Statistics in Medicine 27 (2008) 1693-1702): the distances to the families' own limits, by
    their shares, add up as squares. `stratified_score` takes the spread within a family for known, which four tasks
    that all failed do not tell.
    """
    n = sum(tasks for tasks, _, _ in intervals)
    mean = sum(tasks * rate for tasks, rate, _ in intervals) / n
    below = sum((tasks / n * (rate - low)) ** 2 for tasks, rate, (low, _) in intervals)
    above = sum((tasks / n * (high - rate)) ** 2 for tasks, rate, (_, high) in intervals)
    return max(0.0, mean - below**0.5), min(1.0, mean + above**0.5)
