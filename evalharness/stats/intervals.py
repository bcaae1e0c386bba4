"""Compute intervals for one rate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

Interval = tuple[float, float]

RESAMPLES = 10_000
_SEED = 20_250_101
"""Seed of the bootstrap, so that the same episodes give the same interval."""
Z_95 = 1.959963984540054
_CONFIDENCE = 0.95


def wilson(successes: int, n: int, z: float = Z_95) -> Interval:
    """Return the score interval for a proportion, 0..1. E. B. Wilson, JASA 22 (1927) 209-212.

    Unlike the normal interval, it contains the true value in about 95 % of cases even at n = 20 or near 0 and 1.
    """
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} is not a proportion")
    p = successes / n
    centre = p + z * z / (2 * n)
    half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low, high = float((centre - half) / scale), float((centre + half) / scale)
    return min(p, max(0.0, low)), max(p, min(1.0, high))  # rounding errors can exclude `p`


def bootstrap_mean(values: Sequence[float], *, resamples: int = RESAMPLES) -> Interval:
    """Return the 95 % interval of the mean over tasks by the expanded percentile bootstrap.

    The plain percentile interval is too short at n = 20, because the bootstrap's variance lacks the factor n / (n - 1),
    and because its percentiles match the normal instead of the t distribution. So use wider percentiles (Hesterberg,
    "What Teachers Should Know About the Bootstrap", The American Statistician 69 (2015) 371-386, section 5.3).

    The order of the values does not matter. If all values are equal, both limits are equal.
    """
    if len(values) == 0:
        raise ValueError("a mean needs at least one value")
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    draws = np.random.default_rng(_SEED).integers(0, len(ordered), size=(resamples, len(ordered)))
    tail = expand_tail([ordered], [1.0], (1 - _CONFIDENCE) / 2)
    low, high = np.quantile(ordered[draws].mean(axis=1), [tail, 1 - tail])
    return float(low), float(high)


def expand_tail(strata: Sequence[NDArray[np.float64]], weights: Sequence[float], tail: float) -> float:
    """Return the percentile of the bootstrap that replaces `tail`, so that the interval is not too short (Hesterberg).

    The statistic is sum(weight * mean of stratum); each stratum is resampled separately (Davison & Hinkley 1997,
    section 3.2). The degrees of freedom are Satterthwaite's (Biometrics Bulletin 2 (1946) 110-114).
    """
    resampled = unbiased = fourth = 0.0
    for values, weight in zip(strata, weights, strict=True):
        n = len(values)
        if n < 2 or values[0] == values[-1]:
            continue
        variance = weight**2 * float(np.var(values, ddof=1)) / n
        unbiased += variance
        resampled += variance * (n - 1) / n
        fourth += variance**2 / (n - 1)
    if not unbiased:
        return tail
    freedom = unbiased**2 / fourth
    return float(ndtr(stdtrit(freedom, tail) * np.sqrt(unbiased / resampled)))
