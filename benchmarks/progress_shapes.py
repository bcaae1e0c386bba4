"""How progress, and differences of progress, may be distributed over the tasks of a family."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PROGRESS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
SHAPES = {
    "even": (0.2, 0.2, 0.2, 0.2, 0.2),
    "mostly low": (0.4, 0.3, 0.15, 0.1, 0.05),
    "mostly high": (0.05, 0.1, 0.15, 0.2, 0.5),
    "all or nothing": (0.5, 0.0, 0.0, 0.0, 0.5),
    "70 % at 0": (0.7, 0.2, 0.05, 0.03, 0.02),
    "90 % at 0": (0.9, 0.05, 0.03, 0.02, 0.0),
    "70 % at 1": (0.02, 0.03, 0.05, 0.2, 0.7),
}
"""Shares of the quarters `PROGRESS`."""

Distribution = tuple[NDArray[np.float64], NDArray[np.float64]]
"""(values, their shares)"""


def _off(common: float, others: dict[float, float]) -> Distribution:
    """All tasks at `common` but those with the shares of `others`."""
    values, shares = [common, *others], [1 - sum(others.values()), *others.values()]
    return np.array(values), np.array(shares)


def _mirrored(distribution: Distribution) -> Distribution:
    values, shares = distribution
    return 1 - values, shares


RARE = {
    "2 % above 0, unequal": _off(0, {0.1: 0.008, 0.25: 0.006, 0.5: 0.004, 1: 0.002}),
    "2 % above 0, at 0.1 or 1": _off(0, {0.1: 0.015, 1: 0.005}),
    "3 % above 0, unequal": _off(0, {0.08: 0.012, 0.33: 0.009, 0.67: 0.006, 1: 0.003}),
    "3 % above 0, all at 0.1": _off(0, {0.1: 0.03}),
    "5 % above 0, unequal": _off(0, {0.1: 0.02, 1 / 3: 0.015, 0.75: 0.01, 1: 0.005}),
    "5 % above 0, at 0.1 or 1": _off(0, {0.1: 0.04, 1: 0.01}),
    "5 % above 0, at 0.05 or 0.5": _off(0, {0.05: 0.04, 0.5: 0.01}),
    "10 % above 0, unequal": _off(0, {0.1: 0.06, 0.5: 0.03, 1: 0.01}),
}
"""A weak model on a hard family: nearly all tasks at 0, the others with a few unequal values."""

FAMILIES: dict[str, Distribution] = (
    {name: (PROGRESS, np.array(shares)) for name, shares in SHAPES.items()}
    | RARE
    | {
        "many small steps": _off(
            0, {0.03: 0.2, 0.08: 0.2, 0.17: 0.1, 0.3: 0.08, 0.5: 0.06, 0.66: 0.03, 1: 0.03}
        ),
        "half at 0, thirds": _off(0, {1 / 3: 0.25, 2 / 3: 0.15, 1: 0.1}),
        "95 % at 0.25": _off(0.25, {0: 0.03, 1: 0.02}),
        "3 % below 1, unequal": _mirrored(RARE["3 % above 0, unequal"]),
        "5 % below 1, at 0 or 0.9": _mirrored(RARE["5 % above 0, at 0.1 or 1"]),
    }
)
"""What the progress of a family's tasks may look like."""


def _differing(share: float) -> dict[str, Distribution]:
    return {
        f"{share:.0%} differ, both ways": _off(0, dict.fromkeys((-1, -0.5, -0.25, 0.25, 0.5, 1), share / 6)),
        f"{share:.0%} differ, mostly gains": _off(
            0, {0.25: 0.4 * share, 0.5: 0.3 * share, 1: 0.2 * share, -0.25: 0.1 * share}
        ),
        f"{share:.0%} gain a whole task": _off(0, {1: share}),
    }


DIFFERENCES: dict[str, Distribution] = {
    **_differing(0.02),
    **_differing(0.05),
    **_differing(0.1),
    **_differing(0.3),
    "means of ten attempts": (
        np.linspace(-0.4, 0.4, 9),
        np.array([1, 2, 5, 10, 40, 12, 8, 4, 3]) / 85,
    ),
}
"""What the paired differences of two runs may look like."""
