"""How large a difference between two runs would have to be for their comparison to find it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import bdtr


def mcnemar_power(n: int, discordant: float, difference: float, *, alpha: float = 0.05) -> float:
    """Probability that the exact McNemar test finds a true difference of success rates over `n` paired tasks.

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
    most = binom.ppf(alpha / 2, m, 0.5)  # the largest minority of m flips that rejects, or one more than that
    most = np.where(2 * bdtr(most, m, 0.5) <= alpha, most, most - 1)
    share = (1 + difference / discordant) / 2
    rejects = binom.cdf(most, m, share) + binom.cdf(most, m, 1 - share)
    return float(binom.pmf(m, n, discordant) @ rejects)


def detectable_success_difference(
    n: int, discordant: float, *, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """Smallest true difference of success rates that the exact McNemar test finds with `power`; None where none is.

    The discordant share is taken as observed, or as the difference itself where that is larger (every change a gain).
    """

    from scipy.optimize import brentq

    def missing(difference: float) -> float:
        return mcnemar_power(n, max(discordant, difference), difference, alpha=alpha) - power

    return float(brentq(missing, 1e-9, 1.0, xtol=1e-5)) if missing(1.0) > 0 else None


def detectable_mean_difference(
    differences: Sequence[float], *, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """(t[1 - alpha/2] + t[power]) * s / sqrt(n), n - 1 degrees of freedom, s the standard deviation of the paired
    differences. None where they do not vary, where the result is more than 1 (100 points), which no difference is, and
    where the permutation test cannot reject at all: flipping the signs of n differences gives no p below 2/2^n.

    The usual approximation for a paired t test (Bland, An Introduction to Medical Statistics, chapter 18), which the
    permutation test of a mean approaches.
    """
    from scipy.stats import t

    n = len(differences)
    spread = float(np.std(differences, ddof=1)) if n > 1 else 0.0
    if spread == 0 or 2.0 ** (1 - n) > alpha:
        return None
    found = float((t.ppf(1 - alpha / 2, n - 1) + t.ppf(power, n - 1)) * spread / np.sqrt(n))
    return found if found <= 1 else None
