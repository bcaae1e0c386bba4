"""Two runs over the same tasks: tests and intervals of their difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

from evalharness.stats.intervals import Z_95

FLIPS = 99_999
"""Random sign flips of a permutation test: the smallest p it can give is 0.00001."""
_EXACT_UP_TO = 16
"""Differences: 2^16 sign patterns are enumerated in a few milliseconds."""
_CHUNK = 10_000
_SEED = 20_250_102


def mcnemar_exact(gained: ArrayLike, lost: ArrayLike) -> Any:
    """Two-sided exact p of McNemar's test (Psychometrika 12 (1947) 153-157), binomial form.

    `gained`, `lost`: tasks that only the second, only the first run solved; numbers or arrays of them. 1 where no
    task differs.
    """
    b, c = np.asarray(gained), np.asarray(lost)
    p = np.minimum(1.0, 2 * bdtr(np.minimum(b, c), b + c, 0.5))
    return float(p) if p.ndim == 0 else p


def newcombe_paired(both: ArrayLike, gained: ArrayLike, lost: ArrayLike, neither: ArrayLike) -> Any:
    """95 % interval of (second - first) success rate over the same tasks: (low, high), fractions -1..1.

    Method 10 of R. G. Newcombe, Statistics in Medicine 17 (1998) 2635-2650: Wilson limits of both rates, joined by
    the correlation of the pairs (with continuity correction). Numbers or arrays of counts.
    """
    a, b, c, d = (np.asarray(x, dtype=np.float64) for x in (both, lost, gained, neither))
    n = a + b + c + d
    first, second = (a + b) / n, (a + c) / n
    product = (a + b) * (c + d) * (a + c) * (b + d)
    covariance = a * d - b * c
    corrected = np.where(covariance > n / 2, covariance - n / 2, np.where(covariance >= 0, 0.0, covariance))
    phi = np.divide(corrected, np.sqrt(product), out=np.zeros_like(product), where=product > 0)
    first_low, first_high = _wilson(first, n)
    second_low, second_high = _wilson(second, n)
    difference = second - first

    def reach(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.sqrt(np.maximum(0.0, x * x - 2 * phi * x * y + y * y))

    low = difference - reach(second - second_low, first_high - first)
    high = difference + reach(second_high - second, first - first_low)
    return (float(low), float(high)) if low.ndim == 0 else (low, high)


def _wilson(
    p: NDArray[np.float64], n: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    centre = p + Z_95**2 / (2 * n)
    half = Z_95 * np.sqrt(p * (1 - p) / n + Z_95**2 / (4 * n * n))
    scale = 1 + Z_95**2 / n
    return np.maximum(0.0, (centre - half) / scale), np.minimum(1.0, (centre + half) / scale)


def permutation_test(differences: Sequence[float], *, flips: int = FLIPS) -> float:
    """Two-sided p that the paired differences are symmetric about 0, by flipping their signs (Fisher 1935, § 21).

    Exact for up to 16 differences that are not 0 (those that are do not matter); else by seeded Monte Carlo, counting
    the observed signs among the random ones (Phipson & Smyth, Stat. Appl. Genet. Mol. Biol. 9 (2010) 39), so that p
    is never 0. The same for any order of the tasks and for the runs exchanged.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.size == 0:
        raise ValueError("no paired differences")
    sizes = np.sort(np.abs(values[values != 0]))
    observed = abs(float(values.sum()))
    # Sums that are equal on paper may differ in the last bits.
    threshold = observed - 1e-9 * max(1.0, float(sizes.sum()))
    m = len(sizes)
    if m <= _EXACT_UP_TO:
        patterns = (np.arange(2**m)[:, None] >> np.arange(m)) & 1
        return float(np.mean(np.abs((2 * patterns - 1) @ sizes) >= threshold))
    generator = np.random.default_rng(_SEED)
    as_extreme = 1
    for start in range(0, flips, _CHUNK):
        rows = min(_CHUNK, flips - start)
        bits = np.unpackbits(generator.integers(0, 256, (rows, -(-m // 8)), np.uint8), axis=1, count=m)
        sums = 2 * (bits @ sizes) - sizes.sum()
        as_extreme += int(np.count_nonzero(np.abs(sums) >= threshold))
    return as_extreme / (flips + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Step-down adjusted p values in the given order: below 0.05 where Holm's procedure rejects at 5 % for the whole
    table. S. Holm, Scand. J. Statist. 6 (1979) 65-70. Valid under any dependence between the tests."""
    order = np.argsort(p_values, kind="stable")
    raised = np.asarray(p_values, dtype=np.float64)[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(raised))
    return [float(p) for p in adjusted]
