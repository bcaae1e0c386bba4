"""Analyse several attempts at the same tasks: variance components, and a test for unequal numbers of attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 9_999
"""Number of random permutations in `attempts_test`. The smallest p that they allow is 0.0001."""
_SEED = 20_250_104


@dataclass(frozen=True)
class Components:
    """The parts of the error of a rate, which is a mean over tasks and attempts."""

    repeats: float
    """Number of attempts per task (harmonic mean over tasks)."""
    between_task: float
    """Standard deviation between tasks, as if each task had infinitely many attempts."""
    between_run: float
    """Standard deviation of the attempts at a task around the task's mean."""
    standard_error_tasks: float
    """Standard error of the rate from the choice of tasks, as if each task had infinitely many attempts."""
    standard_error_runs: float
    """Standard error of the rate if these tasks are attempted again."""


def variance_components(strata: Sequence[Sequence[Sequence[float]]]) -> Components | None:
    """Split the variance of a rate into parts from tasks and from attempts; None unless two tasks have several
    attempts.

    `strata`: for each family, the list of attempts of each task. Differences between families count in neither part.

    The method is a one-way analysis of variance with tasks as random effect; a negative between-task variance becomes
    0. Searle, Casella & McCulloch, Variance Components (1992), section 3.6 (harmonic mean for unequal numbers).
    """
    families = [[np.sort(np.asarray(listed, dtype=np.float64)) for listed in stratum] for stratum in strata]
    tasks = [task for family in families for task in family]
    freedom = sum(len(task) - 1 for task in tasks)
    n = len(tasks)
    if sum(len(task) > 1 for task in tasks) < 2 or n <= len(families):
        return None
    within = sum(float(((task - task.mean()) ** 2).sum()) for task in tasks) / freedom
    repeats = n / sum(1 / len(task) for task in tasks)
    spread = sum(float(np.var([task.mean() for task in family])) * len(family) for family in families)
    between = max(0.0, spread / (n - len(families)) - within / repeats)
    return Components(
        repeats=repeats,
        between_task=between**0.5,
        between_run=within**0.5,
        standard_error_tasks=(between / n) ** 0.5,
        standard_error_runs=(within / repeats / n) ** 0.5,
    )


def standard_error(strata: Sequence[Sequence[float]]) -> float:
    """Return the standard error of the mean of all values, from the variance within strata; 0 if no value varies."""
    sizes = [len(stratum) for stratum in strata]
    freedom = sum(sizes) - len(sizes)
    spread = sum(float(np.var(np.sort(stratum))) * len(stratum) for stratum in strata)
    return float((spread / max(1, freedom) / sum(sizes)) ** 0.5)


def attempts_test(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], *, resamples: int = RESAMPLES
) -> float:
    """Return the two-sided p of the hypothesis that each task's attempts in both runs come from the same distribution.

    The statistic is the sum over tasks of the difference of the two means. The test permutes the attempts of both runs
    within each task, with a fixed seed; the observed order counts as one permutation. The level is correct even if the
    runs have different numbers of attempts (Lehmann & Romano, Testing Statistical Hypotheses (2005), section 15.2). A
    sign-flip test would then have a wrong level, because one attempt minus a mean of ten has a skewed distribution.
    """
    generator = np.random.default_rng(_SEED)
    observed, bound = 0.0, 0.0
    dealt = np.zeros(resamples)
    for a, b in zip(first, second, strict=True):
        pooled = np.sort(np.asarray([*a, *b], dtype=np.float64))
        observed += float(np.mean(b)) - float(np.mean(a))
        if pooled[0] == pooled[-1]:
            continue
        sums = _sums_of_subsets(pooled, len(a), resamples, generator)
        dealt += (pooled.sum() - sums) / len(b) - sums / len(a)
        bound += 1.0
    threshold = abs(observed) - 1e-9 * max(1.0, bound)
    return (1 + int(np.count_nonzero(np.abs(dealt) >= threshold))) / (resamples + 1)


def _sums_of_subsets(
    values: NDArray[np.float64], size: int, count: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return the sums of `count` random subsets of the values; each subset has `size` values."""
    if len(np.unique(values)) == 2:
        low, high = values[0], values[-1]
        highs = int((values == high).sum())
        drawn = generator.hypergeometric(highs, len(values) - highs, size, count)
        return np.asarray(low * size + (high - low) * drawn)
    if size == 1:
        return np.asarray(values[generator.integers(0, len(values), count)])
    rows = np.tile(values, (count, 1))
    return np.asarray(generator.permuted(rows, axis=1)[:, :size].sum(axis=1))
