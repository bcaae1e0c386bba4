"""Compute many figures that are a ratio of two sums over tasks, and their differences between two runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from evalharness.stats.intervals import Z_95, Interval, expand_tail

Counts = NDArray[np.float64]
"""Array of tasks x figures x 2: count (numerator) and base (denominator) of each figure in each task."""

_SEED = 20_250_103
_RESAMPLES = 2_000
_CONFIDENCE = 0.95


def ratios(strata: Sequence[Counts]) -> NDArray[np.float64]:
    """Return each figure's ratio: sum of counts / sum of bases over all tasks; nan if the base is 0."""
    return _divide(np.sum([stratum.sum(axis=0) for stratum in strata], axis=0))


def _divide(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    base = sums[..., 1]
    quotients = np.full(base.shape, np.nan)
    np.divide(sums[..., 0], base, out=quotients, where=base > 0)
    return quotients


def bootstrap_ratios(
    strata: Sequence[Counts], other: Sequence[Counts] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the 95 % limits (low, high) of every figure, by resampling tasks within each stratum (a family).

    `other`: the same tasks in another run. If given, return the limits of the difference other - strata, and resample
    the same tasks in both runs. Percentiles are expanded as in `bootstrap_mean`; the variance of a ratio is that of
    count - ratio x base over tasks (delta method; Davison & Hinkley 1997, section 2.7). Resamples with a base of 0 are
    left out. The limits are nan if every resample has a base of 0.
    """
    figures = strata[0].shape[1]
    runs = [strata] if other is None else [strata, other]
    sums = [np.zeros((_RESAMPLES, figures, 2)) for _ in runs]
    for i, draws in enumerate(_draws(*map(len, strata))):
        for total, run in zip(sums, runs, strict=True):
            total += (draws @ run[i].reshape(len(run[i]), -1)).reshape(_RESAMPLES, figures, 2)
    drawn = _divide(sums[0]) if other is None else _divide(sums[1]) - _divide(sums[0])
    residuals = [sum(signed) for signed in zip(*_residuals(runs), strict=True)]
    low, high = np.full(figures, np.nan), np.full(figures, np.nan)
    for figure in range(figures):
        values = drawn[:, figure]
        values = values[~np.isnan(values)]
        if values.size:
            parts = [np.sort(np.asarray(residual)[:, figure]) for residual in residuals]
            tail = expand_tail(parts, [len(part) for part in parts], (1 - _CONFIDENCE) / 2)
            low[figure], high[figure] = np.quantile(values, [tail, 1 - tail])
    return low, high


@lru_cache(maxsize=8)  # the same resamples for all figures and both runs
def _draws(*sizes: int) -> list[NDArray[np.float64]]:
    """Return, for each stratum with `sizes` tasks, how often each resample (row) contains each task (column)."""
    generator = np.random.default_rng(_SEED)
    return [generator.multinomial(n, np.full(n, 1 / n), size=_RESAMPLES).astype(np.float64) for n in sizes]


def _residuals(runs: Sequence[Sequence[Counts]]) -> list[list[NDArray[np.float64]]]:
    """Return (count - ratio x base) / sum of bases per task, for each run and stratum; of two runs, the first is
    negated."""
    residuals = []
    for j, run in enumerate(runs):
        sign = -1.0 if len(runs) == 2 and j == 0 else 1.0
        ratio = np.nan_to_num(ratios(run))
        base = np.maximum(sum(stratum[..., 1].sum(axis=0) for stratum in run), 1e-300)
        residuals.append([sign * (stratum[..., 0] - ratio * stratum[..., 1]) / base for stratum in run])
    return residuals


def mean_length_interval(strata: Sequence[Counts], longest: float) -> Interval:
    """Return the 95 % interval of a mean length: sum of lengths / number of items, with lengths from 1 to `longest`.

    `strata`: tasks x 2 (sum of lengths, number of items). If a few tasks have very long items, percentiles of the
    resampled mean give a too small upper limit. So the result is the union of two intervals. The studentized bootstrap
    of the logarithm (Davison & Hinkley 1997, section 5.2) is reliable even if one task in ten reaches the turn limit.
    The score interval of the reciprocal has a width above 0 even if every length is 1. `benchmarks/coverage_ratios.py`
    compares both intervals. Without any item the result is (nan, nan).
    """
    sums = np.sum([stratum.sum(axis=0) for stratum in strata], axis=0)
    if not sums[1] > 0:
        return float("nan"), float("nan")
    mean = float(sums[0] / sums[1])
    ends = (_studentized(strata, sums), _score_of_reciprocal(strata, sums))
    return max(1.0, min(mean, *(low for low, _ in ends))), min(
        longest, max(mean, *(high for _, high in ends))
    )


def _studentized(strata: Sequence[Counts], sums: NDArray[np.float64]) -> Interval:
    total = np.zeros((_RESAMPLES, 2))
    moments = []
    for stratum, draws in zip(strata, _draws(*map(len, strata)), strict=True):
        total += draws @ stratum
        length, count = stratum.T
        products = np.stack([length, count, length * length, length * count, count * count], axis=1)
        moments.append((len(stratum), draws @ products, products.sum(axis=0)))
    drawn = total[total[:, 1] > 0]
    logs = np.log(drawn[:, 0] / drawn[:, 1])
    errors = _log_error(drawn, [(n, each[total[:, 1] > 0]) for n, each, _ in moments])
    error = float(_log_error(sums[None], [(n, whole[None]) for n, _, whole in moments])[0])
    log = float(np.log(sums[0] / sums[1]))
    studentized = (logs - log)[errors > 1e-12] / errors[errors > 1e-12]
    if error <= 1e-12 or not studentized.size:
        return float(np.exp(log)), float(np.exp(log))
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(studentized, [1 - tail, tail])
    return float(np.exp(log - low * error)), float(np.exp(min(log - high * error, 700.0)))


def _log_error(
    sums: NDArray[np.float64], moments: Sequence[tuple[int, NDArray[np.float64]]]
) -> NDArray[np.float64]:
    """Return the standard error of the logarithm of the ratio for each row of `sums` (delta method). `moments`: for
    each stratum the number of tasks, and the sums of length, count and their products."""
    ratio = sums[:, 0] / sums[:, 1]
    variance = np.zeros(len(sums))
    for n, (length, count, squares, products, counts) in ((n, each.T) for n, each in moments):
        if n > 1:
            residual = squares - 2 * ratio * products + ratio**2 * counts
            variance += n / (n - 1) * (residual - (length - ratio * count) ** 2 / n)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)) / sums[:, 0])


def _score_of_reciprocal(strata: Sequence[Counts], sums: NDArray[np.float64]) -> Interval:
    """Return the reciprocals of the ends of Wilson's interval of count / length, whose variance is the jackknife's."""
    share = float(sums[1] / sums[0])
    variance = 0.0
    for stratum in strata:
        left = sums - stratum
        shares = left[left[:, 0] > 0, 1] / left[left[:, 0] > 0, 0]
        if len(shares) > 1:
            variance += (len(stratum) - 1) / len(stratum) * float(((shares - shares.mean()) ** 2).sum())
    tasks = sum(int((stratum[:, 1] > 0).sum()) for stratum in strata)
    spread = share * (1 - share)
    if tasks > 1 and spread > 1e-12 and variance > 0:
        ratio = float(stdtrit(tasks - 1, (1 + _CONFIDENCE) / 2)) ** 2 * variance / spread
    else:
        ratio = Z_95**2 / tasks
    centre, half = share + ratio / 2, np.sqrt(ratio * spread + ratio * ratio / 4)
    low, high = (centre - half) / (1 + ratio), (centre + half) / (1 + ratio)
    return 1 / min(1.0, float(high)), 1 / max(1e-12, float(low))
