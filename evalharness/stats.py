"""Intervals. Pure; vectorised; every function names its source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Interval = tuple[float, float]

RESAMPLES = 10_000
_SEED = 20_250_101
"""Bootstrap intervals are part of the result, so the same episodes must give the same interval."""
Z_95 = 1.959963984540054


def wilson(successes: int, n: int, z: float = Z_95) -> Interval:
    """Score interval for a proportion, 0..1. E. B. Wilson, JASA 22 (1927) 209-212.

    Keeps its coverage at n = 20 and at 0 or n successes, where the normal interval collapses.
    """
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} is not a proportion")
    p = successes / n
    centre = p + z * z / (2 * n)
    half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, float((centre - half) / scale)), min(1.0, float((centre + half) / scale))


def bootstrap_mean(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Percentile bootstrap interval of the mean over tasks. Efron & Tibshirani (1993), chapter 13.

    Independent of the order of `values`: they are sorted before resampling.
    """
    return bootstrap_weighted_mean([values], [1.0], confidence)


def bootstrap_weighted_mean(
    strata: Sequence[Sequence[float]], weights: Sequence[float], confidence: float = 0.95
) -> Interval:
    """Stratified percentile bootstrap of sum(weight * mean of stratum) / sum(weights).

    Each stratum is resampled within itself (Davison & Hinkley 1997, section 3.2).
    """
    if not strata or any(len(stratum) == 0 for stratum in strata):
        raise ValueError("every stratum needs at least one value")
    generator = np.random.default_rng(_SEED)
    total: NDArray[np.float64] = np.zeros(RESAMPLES)
    for stratum, weight in zip(strata, weights, strict=True):
        values = np.sort(np.asarray(stratum, dtype=np.float64))
        draws = generator.integers(0, len(values), size=(RESAMPLES, len(values)))
        total += weight * values[draws].mean(axis=1)
    total /= sum(weights)
    tail = (1 - confidence) / 2
    low, high = np.quantile(total, [tail, 1 - tail])
    return float(low), float(high)
