"""Compute an interval of a mean paired difference that excludes 0 if and only if the test's p is below 0.05."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum, log

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv

from evalharness.stats.intervals import Interval
from evalharness.stats.root import find_root
from evalharness.stats.score_interval import count_unseen_pairs, dispersion, sort_checked, within_strata

_ALPHA = 0.05
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_SHARES = (_NODES + 1) / 2
"""Probabilities (Gauss-Legendre nodes) at which the quantiles of the mean size of a change are evaluated."""
_UNSEEN = 0.25
"""Factor of `count_unseen_pairs`. If a few tasks change by unequal sizes, a 95 % interval contains the true difference
in 86 % of cases with factor 0, and in more than 98 % with factor 1 (benchmarks/coverage.py)."""
_RESOLVED = 0.001
"""Smallest p that random permutations measure precisely."""


def paired_interval(strata: Sequence[Sequence[float]], p: float) -> Interval:
    """Return the 95 % interval of the mean paired difference -1..1 in all strata (families). `p`: result of a two-sided
    test of these differences.

    The mean difference is (mean size) * (2 * share upwards - 1). The mean size is the mean of the absolute differences.
    The share upwards is the part of the total size that is a gain. A limit combines the distributions of mean size and
    share upwards by the melding method of M. P. Fay & K. Lumbard, Statistics in Medicine 40 (2021) 1147-1159. Three
    things differ from the paper. We use the mid-p instead of the exact McNemar test. Differences may be fractions, so
    the mean size has its measured dispersion. The distribution of the share upwards is that of as many equal changes as
    give `p`, so that interval and test agree. For McNemar's test this is the number of changed tasks.
    """
    deltas = [sort_checked(stratum, -1.0) for stratum in strata]
    n = sum(len(stratum) for stratum in deltas)
    # Use an exact sum, so that the interval only changes its sign if the two runs are exchanged.
    change = fsum(np.concatenate(deltas))
    if change < 0:
        low, high = paired_interval([[-d for d in stratum] for stratum in strata], p)
        return -high, -low
    # Sort, because a sum of floats depends on the order of its terms, and the order of the tasks must not matter.
    sizes = [np.sort(np.abs(stratum)) for stratum in deltas]
    moved = sum(float(stratum.sum()) for stratum in sizes)
    mean = moved / n
    spread = dispersion(mean, within_strata(sizes), n, _UNSEEN * count_unseen_pairs(sizes))
    trials = n / max(float(spread), 1e-9)
    up, down = _count_changes(sizes, change, moved, p)
    low, high = _quantile(trials, mean, up, down, p), -_quantile(trials, mean, down, up, 1.0)
    return min(low, change / n), max(high, change / n)


def _count_changes(
    sizes: Sequence[NDArray[np.float64]], change: float, moved: float, p: float
) -> tuple[float, float]:
    """Return (gains, losses): if all changes had the same size, these numbers of gains and losses would give `p`."""
    if moved <= 0:
        return 0.0, 0.0
    equal = moved**2 / sum(float((stratum**2).sum()) for stratum in sizes)
    upwards = (1 + min(1.0, change / moved)) / 2
    if upwards - 0.5 < 1e-9 or p >= 1:
        return equal * upwards, equal * (1 - upwards)

    def missing(logarithm: float) -> float:
        count = exp(logarithm)
        return 2 * float(_share(count * upwards, count * (1 - upwards), 0.5)) - p

    least, most = log(1e-6), log(1e12)
    total = exp(find_root(missing, least, most)) if missing(least) > 0 > missing(most) else equal
    if p < _RESOLVED:
        total = max(total, equal)
    return total * upwards, total * (1 - upwards)


def _share(up: float, down: float, x: ArrayLike) -> NDArray[np.float64]:
    """Return the probability that the share of gains is at most x, given `up` gains and `down` losses.

    It is the mean of the two beta distributions of the Clopper-Pearson limits. At x = 1/2 it is the one-sided mid-p.
    """
    return (_beta(up, down + 1, x) + _beta(up + 1, down, x)) / 2


def _beta(a: float, b: float, x: ArrayLike) -> NDArray[np.float64]:
    """Return the distribution function of beta(a, b) at x. If a is 0, all probability is at 0; if b is 0, at 1."""
    inside = np.clip(np.asarray(x, dtype=np.float64), 0.0, 1.0)
    if a <= 0 or b <= 0:
        return np.where(inside >= (1 if b <= 0 else 0), 1.0, 0.0) * (np.asarray(x) >= 0)
    return np.asarray(betainc(a, b, inside))


def _quantile(trials: float, mean: float, up: float, down: float, p: float) -> float:
    """Return the lower limit of the 95 % interval, which is above 0 if p < 0.05, and otherwise at most 0."""
    events = trials * mean
    if p < _ALPHA:
        low, high = 0.0, 1.0
        size = betaincinv(events + 0.5, trials - events + 0.5, _SHARES)
    else:
        # A limit below 0 is lower if the changes are larger, so use the upper Clopper-Pearson limit of the mean size.
        low, high = -1.0, 0.0
        size = betaincinv(events + 1, max(trials - events, 1e-9), _SHARES)

    def missing(x: float) -> float:
        return float(_share(up, down, (1 + x / size) / 2) @ _WEIGHTS) / 2 - _ALPHA / 2

    if missing(low) >= 0:
        return low
    if missing(high) <= 0:
        return high
    return float(find_root(missing, low, high, xtol=1e-10))
