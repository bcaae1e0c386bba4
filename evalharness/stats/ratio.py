"""Ratios of sums over tasks, many at once, and their differences between two runs over the same tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evalharness.stats.intervals import expanded_tail

Counts = NDArray[np.float64]
"""tasks x figures x 2: what is counted, of how many."""

_SEED = 20_250_103
_RESAMPLES = 2_000
_CONFIDENCE = 0.95


def ratios(strata: Sequence[Counts]) -> NDArray[np.float64]:
    """Sum of the counts over sum of the bases of each figure over all tasks; nan where nothing was counted."""
    return _divide(np.sum([stratum.sum(axis=0) for stratum in strata], axis=0))


def _divide(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    base = sums[..., 1]
    quotients = np.full(base.shape, np.nan)
    np.divide(sums[..., 0], base, out=quotients, where=base > 0)
    return quotients


def bootstrap_ratios(
    strata: Sequence[Counts], other: Sequence[Counts] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """95 % limits (low, high) of every figure, by resampling tasks within each stratum (a family).

    With `other`, the same tasks in another run, of the difference other - strata: a task is drawn in both or in none.
    Expanded percentiles as in `bootstrap_weighted_mean`; a task's share of the ratio's variance is that of
    count - ratio x base (the delta method; Davison & Hinkley 1997, section 2.7). Resamples in which a figure has no
    base are left out; nan where that leaves none.
    """
    generator = np.random.default_rng(_SEED)
    figures = strata[0].shape[1]
    runs = [strata] if other is None else [strata, other]
    sums = [np.zeros((_RESAMPLES, figures, 2)) for _ in runs]
    for i, stratum in enumerate(strata):
        n = len(stratum)
        draws = generator.multinomial(n, np.full(n, 1 / n), size=_RESAMPLES).astype(np.float64)
        for total, run in zip(sums, runs, strict=True):
            total += (draws @ run[i].reshape(n, -1)).reshape(_RESAMPLES, figures, 2)
    drawn = _divide(sums[0]) if other is None else _divide(sums[1]) - _divide(sums[0])
    residuals = [sum(signed) for signed in zip(*_residuals(runs), strict=True)]
    low, high = np.full(figures, np.nan), np.full(figures, np.nan)
    for figure in range(figures):
        values = drawn[:, figure]
        values = values[~np.isnan(values)]
        if values.size:
            parts = [np.sort(np.asarray(residual)[:, figure]) for residual in residuals]
            tail = expanded_tail(parts, [len(part) for part in parts], (1 - _CONFIDENCE) / 2)
            low[figure], high[figure] = np.quantile(values, [tail, 1 - tail])
    return low, high


def _residuals(runs: Sequence[Sequence[Counts]]) -> list[list[NDArray[np.float64]]]:
    """For each run and stratum: (count - ratio x base) / sum of bases of each task, the first of two runs negative."""
    found = []
    for j, run in enumerate(runs):
        sign = -1.0 if len(runs) == 2 and j == 0 else 1.0
        ratio = np.nan_to_num(ratios(run))
        base = np.maximum(sum(stratum[..., 1].sum(axis=0) for stratum in run), 1e-300)
        found.append([sign * (stratum[..., 0] - ratio * stratum[..., 1]) / base for stratum in run])
    return found
