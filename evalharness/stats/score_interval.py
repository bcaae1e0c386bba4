"""Compute score intervals for the mean of bounded values: one family, several strata, paired differences, subsets.

All of them are Wilson's interval with another variance. `limits` accepts arrays (..., tasks), so that a simulation can
compute thousands of intervals in one call.
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
"""By rounding errors, a mean of fractions may be so far outside its bounds."""
UNSEEN = 1.0
"""Number of artificial tasks at each bound that are added to compute the dispersion. If 1 to 5 % of the tasks differ
from a bound by unequal values, the interval covers 60 to 90 % with 0 such tasks, and 94 % or more with 1
(benchmarks/coverage.py)."""


def score_mean(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the score interval for the mean of values within 0..1, such as the progress of a family's tasks.

    It is Wilson's interval, whose variance mu (1 - mu) / n is multiplied by the dispersion of the values (the
    quasi-score of a binomial-type mean: Wedderburn, Biometrika 61 (1974) 439-447). The dispersion includes one
    artificial task at 0 and one at 1: if only a few tasks differ from a bound, they say little about the next task. The
    limit near the bound is then moved outwards, see `_near_the_edge`. For zeros and ones it is `success_interval`. It
    covers 94 to 98 % for the distributions in benchmarks/coverage.py, and more if only a few values differ from the
    bounds, or if these values are equal.
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
    """Return Wilson's 95 % interval. For one to ten successes or failures, move the limit near 0 or 1 outwards.

    Without this, it covers 91 % at a true rate of 2.5 % in 20 tasks and 89 % at 0.2 % in 60; see `_near_the_edge`.
    """
    low, high = wilson(successes, n)
    if 0 < successes < n:
        low = min(low, float(betaincinv(successes, n - successes, 0.05)))
        high = max(high, float(betaincinv(successes, n - successes, 0.95)))
    return low, high


def stratified_score(strata: Sequence[Sequence[float]], confidence: float = 0.95) -> Interval:
    """Return the score interval for the mean over several strata (families); only variance within strata counts."""
    low, high = limits([sort_checked(stratum, 0.0) for stratum in strata], confidence)
    return float(low), float(high)


def sort_checked(values: Sequence[float], least: float) -> Values:
    """Sort the values, so that their order does not matter. Raise ValueError for values outside the bounds."""
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
    """Return (low, high) for the mean of the values 0..1 in the last axis, over all strata.

    `inflation`: variance / variance of independent tasks. `freedom`: degrees of freedom of a variance between few
    kinds; None for the normal quantile. `unseen`: see `UNSEEN`.
    """
    n = sum(stratum.shape[-1] for stratum in strata)
    mean = sum(stratum.sum(axis=-1) for stratum in strata) / n
    within = within_strata(strata)
    tail = (1 + confidence) / 2
    quantile = ndtri(tail) if freedom is None else stdtrit(freedom, tail)
    # quantile^2 / effective number of binary tasks
    ratio = quantile**2 * dispersion(mean, within, n, unseen) * inflation / n
    half = np.sqrt(ratio * mean * (1 - mean) + ratio**2 / 4)
    low = np.clip((mean + ratio / 2 - half) / (1 + ratio), 0.0, mean)
    high = np.clip((mean + ratio / 2 + half) / (1 + ratio), mean, 1.0)
    edge_low, edge_high = _near_the_edge(mean, within / n / (n + 1) * inflation, confidence)
    return np.minimum(low, edge_low), np.maximum(high, edge_high)


def within_strata(strata: Sequence[Values]) -> Any:
    """Return the sum of squares around the means of the strata, without bias although the means are estimated."""
    n = sum(stratum.shape[-1] for stratum in strata)
    total: Any = 0.0
    for stratum in strata:
        size = stratum.shape[-1]
        squares = ((stratum - stratum.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
        # For one stratum the factor is 1: the score interval already accounts for the estimated variance.
        total = total + squares * (size / (size - 1) * (n - 1) / n if size > 1 else 1.0)
    return total


def unseen_pairs(strata: Sequence[Values]) -> Any:
    """Return the number of artificial tasks for paired differences: `UNSEEN` times the squared share of tasks that have
    the most frequent difference.

    If most tasks tie, the few other differences say little about the next task. If nearly all differences are distinct
    (means of ten attempts), they say enough, and one artificial task at each bound would double the width.
    """
    values = np.round(np.sort(np.concatenate(strata, axis=-1), axis=-1), 9)
    n = values.shape[-1]
    positions = np.arange(n)
    new = np.concatenate([np.ones((*values.shape[:-1], 1), bool), np.diff(values, axis=-1) != 0], axis=-1)
    runs = positions - np.maximum.accumulate(np.where(new, positions, 0), axis=-1) + 1
    return UNSEEN * (runs.max(axis=-1) / n) ** 2


def dispersion(mean: Any, within: Any, n: int, unseen: Any) -> Any:
    """Return variance / (mu (1 - mu)), with `unseen` tasks added at each bound; 1 if all values are at a bound."""
    size = n + 2 * unseen
    centre = (mean * n + unseen) / size
    squares = within + n * (mean - centre) ** 2 + unseen * (centre**2 + (1 - centre) ** 2)
    return squares / size / (centre * (1 - centre))


def _near_the_edge(mean: Any, variance: Any, confidence: float) -> tuple[Any, Any]:
    """Return one-sided limits of the beta distribution with this mean and variance; the mean if the variance is 0.

    Wilson's lower limit is too high after one to ten events: after one event in 20 tasks it excludes rates at which
    one family in six has such an event. Brown, Cai & DasGupta (Statistical Science 16 (2001) 101-133, section 4.1.1)
    then use the one-sided Poisson limit; this function does the same for any values. Farther from 0 and 1, Wilson's
    interval is wider.
    """
    known = variance > 1e-15
    size = np.where(known, mean * (1 - mean) / np.where(known, variance, 1.0) - 1, 1.0)
    alpha, beta = np.where(known, mean * size, 1.0), np.where(known, (1 - mean) * size, 1.0)
    low = np.where(known, betaincinv(alpha, beta, 1 - confidence), mean)
    high = np.where(known, betaincinv(alpha, beta, confidence), mean)
    return low, high


def p_of_no_difference(strata: Sequence[Values], *, inflation: Any = 1.0, freedom: Any = None) -> Any:
    """Return the two-sided p that the mean paired difference -1..1 is 0, by the score test that `limits` inverts."""
    shares = [(stratum + 1) / 2 for stratum in strata]
    n = sum(stratum.shape[-1] for stratum in shares)
    mean = sum(stratum.sum(axis=-1) for stratum in shares) / n
    variance = dispersion(mean, within_strata(shares), n, unseen_pairs(shares)) * inflation / (4 * n)
    return np.minimum(
        1.0, 2 * stdtr(np.inf if freedom is None else freedom, -np.abs(mean - 0.5) / np.sqrt(variance))
    )


_LEAST_P = 1e-6
_LEAST_GAIN = 0.4
"""Lower limit for the factor by which the order reduces the variance, because few tasks estimate this factor."""


def subset_interval(strata: Sequence[Sequence[float]], of: int, confidence: float = 0.95) -> Interval:
    """Return the interval for the mean over `of` tasks, from the values 0..1 of a subset of them.

    Each stratum is a family, ordered by difficulty; the subset has one task of each of its equal parts. The variance of
    `stratified_score` is multiplied by two factors: the share of tasks that were not played, and the mean squared
    difference of neighbours / twice the variance, as for systematic samples (Wolter, Introduction to Variance
    Estimation, 2nd ed., section 8.2). benchmarks/coverage_subset.py measures the coverage.
    """
    return _subset_limits(
        [np.asarray(stratum, dtype=np.float64) for stratum in strata], of, confidence, UNSEEN
    )


def subset_difference(strata: Sequence[Sequence[float]], rate: float, of: int) -> tuple[Interval, float]:
    """Return (95 % interval, two-sided p) of a mean paired difference -1..1 over `of` tasks, from a subset of them.

    `strata`: as in `subset_interval`. `rate`: their mean, weighted by the number of tasks that each task represents. p
    is derived from the interval, so both always agree.
    """

    shares = [(np.asarray(stratum, dtype=np.float64) + 1) / 2 for stratum in strata]
    unseen = float(unseen_pairs(shares))
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

    MOVER (Zou & Donner, Statistics in Medicine 27 (2008) 1693-1702): the distances between rates and limits, weighted
    by the families' shares of tasks, add up as squares. `stratified_score` would assume that the variance within a
    family is known, which is wrong for four tasks that all failed.
    """
    n = sum(tasks for tasks, _, _ in intervals)
    mean = sum(tasks * rate for tasks, rate, _ in intervals) / n
    below = sum((tasks / n * (rate - low)) ** 2 for tasks, rate, (low, _) in intervals)
    above = sum((tasks / n * (high - rate)) ** 2 for tasks, rate, (_, high) in intervals)
    return max(0.0, mean - below**0.5), min(1.0, mean + above**0.5)
