"""The score of a whole suite from a part of it that was chosen by difficulty."""

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
