"""Measure the agreement of two raters beyond chance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evalharness.stats.intervals import Interval

_DRAWS = 50_000
_SEED = 20_250_104


def _kappa(shares: Any) -> Any:
    """Return kappa. Last axis of `shares`: both raters yes, only the first, only the second, both no."""
    a, b, c, d = np.moveaxis(np.asarray(shares, dtype=np.float64), -1, 0)
    chance = (a + b) * (a + c) + (c + d) * (b + d)
    kappa = np.full(np.shape(chance), np.nan)
    np.divide(a + d - chance, 1 - chance, out=kappa, where=chance < 1 - 1e-12)
    return kappa


def cohen_kappa(counts: ArrayLike) -> float | None:
    """Return Cohen's kappa for four counts of items: both raters said yes, only the first, only the second, both said
    no. Return None if all answers are equal. J. Cohen, Educational and Psychological Measurement 20 (1960) 37-46."""
    data = np.asarray(counts, dtype=np.float64)
    if data.shape != (4,) or data.min() < 0 or data.sum() <= 0:
        raise ValueError(f"{counts!r} are not four counts")
    value = float(_kappa(data / data.sum()))
    return None if np.isnan(value) else value


def kappa_interval(counts: ArrayLike, confidence: float = 0.95) -> Interval | None:
    """Return the equal-tailed credible interval of kappa under Jeffreys' prior; None if kappa is undefined.

    The posterior of the four shares is Dirichlet(counts + 1/2), sampled with a fixed seed. For one proportion, Brown,
    Cai and DasGupta recommend this prior (Statistical Science 16 (2001) 101-133). The interval has a width even if the
    raters always agree, unlike that of Fleiss, Cohen & Everitt (Psychological Bulletin 72 (1969) 323-327).
    """
    observed = cohen_kappa(counts)
    if observed is None:
        return None
    alpha = np.asarray(counts, dtype=np.float64) + 0.5
    drawn = _kappa(np.random.default_rng(_SEED).dirichlet(alpha, size=_DRAWS))
    tail = (1 - confidence) / 2
    low, high = np.nanquantile(drawn, [tail, 1 - tail])
    return min(float(low), observed), max(float(high), observed)
