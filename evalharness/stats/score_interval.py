"""Compute score intervals for the mean of bounded values: one family, several strata, paired differences, subsets.

All these intervals are Wilson's interval with different variances. `limits` accepts arrays (..., tasks), so that a
simulation can compute thousands of intervals in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri, stdtr, stdtrit

from evalharness.stats.intervals import Interval, wilson
from evalharness.stats.root import find_root

Values = NDArray[np.float64]
_ROUNDING = 1e-9
"""Values outside the bounds by at most this amount are accepted, because means of fractions have rounding errors."""
UNSEEN = 1.0
"""Number of artificial tasks that are added at each bound when the dispersion is computed. They make intervals long
enough if only 1 to 5 % of the tasks differ from a bound, by unequal values. In simulations, 95 % intervals then contain
the true mean in 60 to 90 % of cases with 0 artificial tasks, and in 94 % or more with 1 (benchmarks/coverage.py)."""


def score_mean(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the score interval for the mean of values within 0..1, such as the progress of a family's tasks.

    It is Wilson's interval with the variance mu (1 - mu) / n multiplied by the dispersion of the values (the
    quasi-score of a binomial-type mean: Wedderburn, Biometrika 61 (1974) 439-447). The dispersion includes one
    artificial task at each bound (see `UNSEEN`). The limit near a bound is moved outwards (see `_near_the_edge`). If
    all values are 0 or 1, the interval equals `success_interval`. In simulations (benchmarks/coverage.py), 94 to 98 %
    of the 95 % intervals contain the true mean; more if only a few values differ from the bounds.
    """
    return stratified_score([values], confidence)


def rate_interval(values: Sequence[float], *, binary: bool) -> Interval:
    """Return the 95 % interval of a rate from one value per task: `success_interval` if `binary` and all values are 0
    or 1, otherwise `score_mean` (for example for means over samples).
    """
    if binary and all(value in (0.0, 1.0) for value in values):
        return success_interval(round(sum(values)), len(values))
    return score_mean(values)


def success_interval(successes: int, n: int) -> Interval:
    """Return Wilson's 95 % interval, with the limit near 0 or 1 moved outwards for one to ten successes or failures.

    Plain Wilson intervals contain a true rate of 2.5 % in only 91 % of samples of 20 tasks; see `_near_the_edge`.
    """
    low, high = wilson(successes, n)
    if 0 < successes < n:
        low = min(low, float(betaincinv(successes, n - successes, 0.05)))
        high = max(high, float(betaincinv(successes, n - successes, 0.95)))
    return low, high


def stratified_score(strata: Sequence[Sequence[float]], confidence: float = 0.95) -> Interval:
    """Return the score interval for the mean over several strata (families), from the variance within strata."""
    low, high = limits([sort_checked(stratum, 0.0) for stratum in strata], confidence)
    return float(low), float(high)


def sort_checked(values: Sequence[float], least: float) -> Values:
    """Sort the values, so that results do not depend on their order. Raise ValueError for values outside `least`..1."""
    data = np.sort(np.asarray(values, dtype=np.float64))
    if data.size == 0 or data[0] < least - _ROUNDING or data[-1] > 1 + _ROUNDING:
        bounds = "fractions 0..1" if least == 0 else "differences -1..1"
        raise ValueError(f"the values must be {bounds}, and at least one")
    return data.clip(least, 1.0)


def limits(
    strata: Sequence[Values],
    confidence: float = 0.95,
    *,
    inflation: Any = 1.0,
    freedom: Any = None,
    unseen: Any = UNSEEN,
) -> tuple[Any, Any]:
    """Return the interval (low, high) for the mean over all strata of values 0..1. The last axis is the task.

    `inflation`: factor of the variance, if tasks are not independent. `freedom`: degrees of freedom of Student's t;
    None for the normal distribution. `unseen`: number of artificial tasks at each bound, see `UNSEEN`.
    """
    n = sum(stratum.shape[-1] for stratum in strata)
    mean = sum(stratum.sum(axis=-1) for stratum in strata) / n
    within = within_strata(strata)
    tail = (1 + confidence) / 2
    quantile = ndtri(tail) if freedom is None else stdtrit(freedom, tail)
    # quantile^2 / number of binary tasks that would give the same variance
    ratio = quantile**2 * dispersion(mean, within, n, unseen) * inflation / n
    half = np.sqrt(ratio * mean * (1 - mean) + ratio**2 / 4)
    low = np.clip((mean + ratio / 2 - half) / (1 + ratio), 0.0, mean)
    high = np.clip((mean + ratio / 2 + half) / (1 + ratio), mean, 1.0)
    edge_low, edge_high = _near_the_edge(mean, within / n / (n + 1) * inflation, confidence)
    return np.minimum(low, edge_low), np.maximum(high, edge_high)


def within_strata(strata: Sequence[Values]) -> Any:
    """Return the sum of squares around the means of the strata, corrected for the bias from estimating these means."""
    n = sum(stratum.shape[-1] for stratum in strata)
    total: Any = 0.0
    for stratum in strata:
        size = stratum.shape[-1]
        squares = ((stratum - stratum.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
        # For one stratum the factor is 1, because the score interval itself corrects for the estimated mean.
        total = total + squares * (size / (size - 1) * (n - 1) / n if size > 1 else 1.0)
    return total


def count_unseen_pairs(strata: Sequence[Values]) -> Any:
    """Return the number of artificial tasks at each bound for paired differences.

    It is `UNSEEN` times the squared share of tasks that have the most frequent difference. If most tasks tie, the few
    other differences say little about further tasks, so artificial tasks are needed. If nearly all differences are
    distinct (means of ten attempts), one artificial task at each bound would double the width for no reason.
    """
    values = np.round(np.sort(np.concatenate(strata, axis=-1), axis=-1), 9)
    n = values.shape[-1]
    positions = np.arange(n)
    new = np.concatenate([np.ones((*values.shape[:-1], 1), bool), np.diff(values, axis=-1) != 0], axis=-1)
    runs = positions - np.maximum.accumulate(np.where(new, positions, 0), axis=-1) + 1
    return UNSEEN * (runs.max(axis=-1) / n) ** 2


def dispersion(mean: Any, within: Any, n: int, unseen: Any) -> Any:
    """Return variance / (mu (1 - mu)) after adding `unseen` tasks at each bound; 1 if all values are 0 or 1."""
    size = n + 2 * unseen
    centre = (mean * n + unseen) / size
    squares = within + n * (mean - centre) ** 2 + unseen * (centre**2 + (1 - centre) ** 2)
    return squares / size / (centre * (1 - centre))


def _near_the_edge(mean: Any, variance: Any, confidence: float) -> tuple[Any, Any]:
    """Return one-sided limits of the beta distribution with this mean and variance; the mean if the variance is 0.

    Wilson's lower limit is too high if there are one to ten successes. After one success in 20 tasks, it excludes true
    rates that give a success in every sixth sample. For this case Brown, Cai & DasGupta (Statistical Science 16 (2001)
    101-133, section 4.1.1) use the one-sided Poisson limit. This function does the same for any values. Farther from 0
    and 1, Wilson's limits are wider and are used.
    """
    known = variance > 1e-15
    size = np.where(known, mean * (1 - mean) / np.where(known, variance, 1.0) - 1, 1.0)
    alpha, beta = np.where(known, mean * size, 1.0), np.where(known, (1 - mean) * size, 1.0)
    low = np.where(known, betaincinv(alpha, beta, 1 - confidence), mean)
    high = np.where(known, betaincinv(alpha, beta, confidence), mean)
    return low, high


def p_of_no_difference(strata: Sequence[Values], *, inflation: Any = 1.0, freedom: Any = None) -> Any:
    """Return the two-sided p of the score test that the mean of paired differences -1..1 is 0, as in `limits`."""
    shares = [(stratum + 1) / 2 for stratum in strata]
    n = sum(stratum.shape[-1] for stratum in shares)
    mean = sum(stratum.sum(axis=-1) for stratum in shares) / n
    variance = dispersion(mean, within_strata(shares), n, count_unseen_pairs(shares)) * inflation / (4 * n)
    return np.minimum(
        1.0, 2 * stdtr(np.inf if freedom is None else freedom, -np.abs(mean - 0.5) / np.sqrt(variance))
    )


_LEAST_P = 1e-6
_LEAST_GAIN = 0.4
"""Minimum of the factor by which ordering the tasks by difficulty reduces the variance in `subset_interval`. The factor
is estimated from few tasks and could be much too small."""


def subset_interval(strata: Sequence[Sequence[float]], of: int, confidence: float = 0.95) -> Interval:
    """Return the interval for the mean over `of` tasks, from the values 0..1 of a subset of these tasks.

    Each stratum is a family, ordered by difficulty and cut into parts of equal size; the subset has one task of each
    part. The variance of `stratified_score` is multiplied by the share of tasks that are not in the subset, and by
    (mean squared difference of neighbours) / (2 * variance), as for systematic samples (Wolter, Introduction to
    Variance Estimation, 2nd ed., section 8.2). benchmarks/coverage_subset.py measures the coverage.
    """
    return _subset_limits(
        [np.asarray(stratum, dtype=np.float64) for stratum in strata], of, confidence, UNSEEN
    )


def subset_difference(strata: Sequence[Sequence[float]], rate: float, of: int) -> tuple[Interval, float]:
    """Return (95 % interval, two-sided p) of a mean paired difference -1..1 over `of` tasks, from a subset of them.

    `strata`: as in `subset_interval`. `rate`: the mean difference, weighted by the number of tasks that each task
    represents. p is 1 - confidence of the widest interval that excludes 0, so p and the 95 % interval always agree.
    """

    shares = [(np.asarray(stratum, dtype=np.float64) + 1) / 2 for stratum in strata]
    unseen = float(count_unseen_pairs(shares))
    shift = rate - (2 * float(np.concatenate(shares).mean()) - 1)

    def ends(confidence: float) -> Interval:
        low, high = (2 * end - 1 + shift for end in _subset_limits(shares, of, confidence, unseen))
        return max(-1.0, min(low, rate)), min(1.0, max(high, rate))

    def overshoot(p: float) -> float:
        low, high = ends(1 - p)
        return low if rate > 0 else -high

    if abs(rate) < _ROUNDING or overshoot(1.0) <= 0:
        return ends(0.95), 1.0
    return ends(0.95), float(find_root(overshoot, _LEAST_P, 1.0)) if overshoot(_LEAST_P) < 0 else _LEAST_P


def _subset_limits(values: Sequence[Values], of: int, confidence: float, unseen: float) -> Interval:
    played = sum(len(stratum) for stratum in values)
    spread = sum(len(v) * float(v.var(ddof=1)) for v in values if len(v) > 1)
    steps = sum(len(v) * float((np.diff(v) ** 2).mean()) / 2 for v in values if len(v) > 1)
    gain = min(1.0, max(_LEAST_GAIN, steps / spread)) if spread > 0 else 1.0
    low, high = limits(
        [sort_checked(stratum.tolist(), 0.0) for stratum in values],
        confidence,
        inflation=gain * (1 - played / of),
        unseen=unseen,
    )
    return float(low), float(high)


def pooled_interval(intervals: Sequence[tuple[int, float, Interval]]) -> Interval:
    """Return the interval for the mean over the tasks of several families, from each (tasks, rate, 95 % interval).

    The method is MOVER (Zou & Donner, Statistics in Medicine 27 (2008) 1693-1702): the squared distances between rate
    and limit, weighted by the squared shares of tasks, are added. `stratified_score` is not used, because it takes a
    family of four tasks that all failed for a family without variance.
    """
    n = sum(tasks for tasks, _, _ in intervals)
    mean = sum(tasks * rate for tasks, rate, _ in intervals) / n
    below = sum((tasks / n * (rate - low)) ** 2 for tasks, rate, (low, _) in intervals)
    above = sum((tasks / n * (high - rate)) ** 2 for tasks, rate, (_, high) in intervals)
    return max(0.0, mean - below**0.5), min(1.0, mean + above**0.5)
