"""How large a difference between two runs would have to be for their comparison to find it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from evalharness.stats.paired import mcnemar_midp


def mcnemar_power(n: int, discordant: float, difference: float, *, alpha: float = 0.05) -> float:
    """Probability that the McNemar mid-p test finds a true difference of success rates over `n` paired tasks.

    `discordant`: probability that a task is solved by one run only, at least |difference|. Exact: the number of such
    tasks is binomial, and given it so are the gains (unconditional power; Lachin, Statistics in Medicine 11 (1992)
    1239-1251).
    """
    if n < 1 or not abs(difference) <= discordant <= 1:
        raise ValueError(f"no paired tasks have n {n}, discordant {discordant}, difference {difference}")
    from scipy.stats import binom  # most of a second, and only comparisons need it

    if discordant == 0:
        return 0.0
    m = np.arange(n + 1)
    most = binom.ppf(alpha / 2, m, 0.5) + 1  # the largest minority of m flips that rejects, or up to two more
    for _ in range(2):
        most = np.where(
            mcnemar_midp(np.minimum(most, m - most), np.maximum(most, m - most)) <= alpha, most, most - 1
        )
    share = (1 + difference / discordant) / 2
    rejects = binom.cdf(most, m, share) + binom.cdf(most, m, 1 - share)
    return float(binom.pmf(m, n, discordant) @ rejects)


def detectable_difference(
    differences: Sequence[float], *, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """Smallest true mean of paired differences that the test of their signs finds with `power`; None where none is.

    Tasks change as often and as much as they did here; where all have to change for the difference, and upwards, they
    do. Success is exact: the power of the McNemar mid-p test. Fractions count as changes of equal size that weigh the
    same, (sum of sizes)^2 / (sum of squares) of them.
    """
    from scipy.optimize import brentq

    sizes = np.abs(np.asarray(differences, dtype=np.float64))
    n, moved = len(sizes), float(sizes.sum())
    size = float((sizes**2).sum()) / moved if moved else 1.0
    discordant = min(1.0, moved / size / n)

    def missing(difference: float) -> float:
        return mcnemar_power(n, max(discordant, difference), difference, alpha=alpha) - power

    return size * float(brentq(missing, 1e-9, 1.0, xtol=1e-5)) if missing(1.0) > 0 else None


def detectable_by_attempts(
    first: Sequence[ArrayLike], second: Sequence[ArrayLike], *, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """Smallest true mean of differences that `attempts_test` finds with `power`: (z[1 - alpha/2] + z[power]) times the
    standard deviation of what it deals. None where nothing varies within a task, or where that is more than 1."""
    from scipy.special import ndtri

    variance = 0.0
    for a, b in zip(first, second, strict=True):
        one, other = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
        variance += float(np.var(np.concatenate([one, other]), ddof=1)) * (1 / len(one) + 1 / len(other))
    found = float(ndtri(1 - alpha / 2) + ndtri(power)) * variance**0.5 / len(first)
    return found if 0 < found <= 1 else None
