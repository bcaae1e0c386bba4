"""Find the root of a function without scipy.optimize, whose import takes longer than the computations of a command."""

from __future__ import annotations

from collections.abc import Callable


def find_root(function: Callable[[float], float], low: float, high: float, xtol: float = 0.0) -> float:
    """Find a root by bisection, to within `xtol` or 13 digits. The function's signs at `low` and `high` must differ."""
    begins_below = function(low) < 0
    while high - low > max(xtol, 1e-13 * (abs(low) + abs(high))):
        middle = (low + high) / 2
        if (function(middle) < 0) == begins_below:
            low = middle
        else:
            high = middle
    return (low + high) / 2
