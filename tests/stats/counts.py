"""Exact enumeration of paired outcomes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Counts = NDArray[np.float64]


def changes(n: int) -> tuple[Counts, Counts]:
    """Every (gained, lost) of n paired tasks."""
    listed = np.array([(gained, m - gained) for m in range(n + 1) for gained in range(m + 1)])
    return listed[:, 0].astype(float), listed[:, 1].astype(float)


def probabilities(n: int, gained: Counts, lost: Counts, gains: float, losses: float) -> Counts:
    """Trinomial probability of each, a task being gained or lost with these probabilities."""
    log = gammaln(n + 1)
    for cell, share in ((gained, gains), (lost, losses), (n - gained - lost, 1 - gains - losses)):
        log = log - gammaln(cell + 1) + np.where(cell > 0, cell * np.log(max(share, 1e-300)), 0.0)
    return np.exp(log)


def coverage(ends: tuple[Counts, Counts], truth: float) -> float:
    low, high = ends
    return float(np.mean((low <= truth + 1e-12) & (truth <= high + 1e-12)))
