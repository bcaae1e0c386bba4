"""Several attempts at the same tasks: how much of the error is the attempt's, and runs with unequal numbers of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 9_999
"""The smallest p of `attempts_test` is 0.0001."""
_SEED = 20_250_104


@dataclass(frozen=True)
class Components:
    """Where the variance of a rate comes from. Fractions 0..1; standard errors of the mean over tasks and attempts."""

    repeats: float
    """Attempts at a task (harmonic mean over tasks)."""
    between_task: float
    """Standard deviation of what the tasks would score in endless attempts."""
    between_run: float
    """Standard deviation of one attempt about its task's own mean."""
    standard_error_tasks: float
    """Other tasks, endless attempts."""
    standard_error_runs: float
    """These tasks, attempted as often again."""


def variance_components(strata: Sequence[Sequence[Sequence[float]]]) -> Components | None:
    """From a list of attempts a task, families apart; None unless two tasks or more were attempted more than once.

    Differences between families are no error of a mean over all their tasks, and are in neither component.

    One-way analysis of variance with tasks as random effect; a negative between-task variance is 0. Searle, Casella &
    McCulloch, Variance Components (1992), section 3.6 (with the harmonic mean for unequal numbers).
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
    """Of the mean over all values, from their spread within strata; 0 where every stratum has one value."""
    sizes = [len(stratum) for stratum in strata]
    freedom = sum(sizes) - len(sizes)
    spread = sum(float(np.var(np.sort(stratum))) * len(stratum) for stratum in strata)
    return float((spread / max(1, freedom) / sum(sizes)) ** 0.5)


def attempts_test(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], *, resamples: int = RESAMPLES
) -> float:
    """Two-sided p that every task's attempts in both runs come from one distribution, where a task may have more
    attempts in one run than in the other.

    Within each task the attempts of both runs are dealt again to the two runs; the statistic is the sum over tasks of
    the difference of the means. Under the null every deal is as likely, so that the size is right for any numbers of
    attempts (Lehmann & Romano, Testing Statistical Hypotheses (2005), section 15.2); flipping the sign of (one attempt
    - mean of ten) is not, for that difference is skewed. Seeded; the observed deal counts as one of them.
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
    """Sums of `count` random subsets of `size` of the values."""
    if len(np.unique(values)) == 2:
        low, high = values[0], values[-1]
        highs = int((values == high).sum())
        drawn = generator.hypergeometric(highs, len(values) - highs, size, count)
        return np.asarray(low * size + (high - low) * drawn)
    if size == 1:
        return np.asarray(values[generator.integers(0, len(values), count)])
    rows = np.tile(values, (count, 1))
    return np.asarray(generator.permuted(rows, axis=1)[:, :size].sum(axis=1))
