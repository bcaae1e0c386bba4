"""Compute the smallest true difference that a comparison of two runs detects, and the number of tasks that it needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from evalharness.stats.paired import mcnemar_midp
from evalharness.stats.root import find_root


def mcnemar_power(n: int, discordant: float, difference: float, *, alpha: float = 0.05) -> float:
    """Return the probability that the McNemar mid-p test detects a true difference of success rates over `n` tasks.

    `discordant`: probability that exactly one of the runs solves a task; at least |difference|. The power is exact: it
    averages over the binomial number of such tasks (Lachin, Statistics in Medicine 11 (1992) 1239-1251).
    """
    if n < 1 or not abs(difference) <= discordant <= 1:
        raise ValueError(f"no paired tasks have n {n}, discordant {discordant}, difference {difference}")
    from scipy.special import bdtr, bdtrik  # scipy.stats is slower to import

    if discordant == 0:
        return 0.0
    m = np.arange(n + 1)
    # For each number m of changed tasks: the largest count of the rarer change with p <= alpha; -1 if there is none.
    # The first guess may be too large by two.
    most = np.ceil(np.nan_to_num(bdtrik(alpha / 2, m, 0.5))) + 1
    for _ in range(2):
        most = np.where(
            mcnemar_midp(np.minimum(most, m - most), np.maximum(most, m - most)) <= alpha, most, most - 1
        )
    share = (1 + difference / discordant) / 2
    rejects = sum(np.where(most < 0, 0, bdtr(np.maximum(most, 0), m, each)) for each in (share, 1 - share))
    changed = np.diff(bdtr(m, n, discordant), prepend=0.0)
    return float(changed @ rejects)


MOST_TASKS = 100_000


def tasks_needed(discordant: float, difference: float, *, power: float = 0.8) -> int | None:
    """Return the approximate number of tasks with which the McNemar mid-p test detects a true difference with `power`
    at the 5 % level (see `mcnemar_power`); None if this number is above `MOST_TASKS`."""
    enough = 1
    while mcnemar_power(enough, discordant, difference) < power:
        if (enough := 2 * enough) > MOST_TASKS:
            return None
    few = enough // 2
    while enough - few > max(1, few // 50):
        middle = (few + enough) // 2
        few, enough = (
            (few, middle) if mcnemar_power(middle, discordant, difference) >= power else (middle, enough)
        )
    return enough


def detectable_difference(
    differences: Sequence[float], *, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """Return the smallest true mean of paired differences that the sign-flip test detects with `power`, if any.

    Assume that as many tasks change as in `differences`, or more if the mean needs it. For success the power is exact
    (McNemar mid-p). For fractions it is that of (sum of sizes)^2 / (sum of squares) changes of equal size.
    """

    sizes = np.abs(np.asarray(differences, dtype=np.float64))
    n, moved = len(sizes), float(sizes.sum())
    size = float((sizes**2).sum()) / moved if moved else 1.0
    discordant = min(1.0, moved / size / n)

    def missing(difference: float) -> float:
        return mcnemar_power(n, max(discordant, difference), difference, alpha=alpha) - power

    return size * float(find_root(missing, 1e-9, 1.0, xtol=1e-5)) if missing(1.0) > 0 else None


def detectable_by_attempts(
    first: Sequence[ArrayLike], second: Sequence[ArrayLike], *, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """Return the smallest true mean difference that `attempts_test` detects with `power`.

    It is (z[1 - alpha/2] + z[power]) times the standard deviation of the test's statistic. Return None if the attempts
    of no task differ from each other, or if the result would be above 1.
    """
    from scipy.special import ndtri

    variance = 0.0
    for a, b in zip(first, second, strict=True):
        one, other = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
        variance += float(np.var(np.concatenate([one, other]), ddof=1)) * (1 / len(one) + 1 / len(other))
    difference = float(ndtri(1 - alpha / 2) + ndtri(power)) * variance**0.5 / len(first)
    return difference if 0 < difference <= 1 else None
