"""Exact enumeration of paired outcomes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Counts = NDArray[np.float64]


def tables(n: int) -> tuple[Counts, Counts, Counts, Counts]:
    """Every way in which n paired tasks can fall into (both, gained, lost, neither)."""
    listed = np.array(
        [
            (a, b, c, n - a - b - c)
            for a in range(n + 1)
            for b in range(n + 1 - a)
            for c in range(n + 1 - a - b)
        ]
    )
    return tuple(listed.T.astype(float))  # type: ignore[return-value]


def probabilities(cells: tuple[Counts, ...], shares: tuple[float, ...]) -> Counts:
    """Multinomial probability of each table."""
    n = sum(cell[0] for cell in cells)
    log = gammaln(n + 1)
    for cell, share in zip(cells, shares, strict=True):
        log = log - gammaln(cell + 1) + np.where(cell > 0, cell * np.log(max(share, 1e-300)), 0.0)
    return np.exp(log)


def coverage(ends: tuple[Counts, Counts], truth: float) -> float:
    low, high = ends
    return float(np.mean((low <= truth + 1e-12) & (truth <= high + 1e-12)))
