"""The root of a function. Importing scipy.optimize takes longer than all that a command computes with it."""

from __future__ import annotations

from collections.abc import Callable


def find_root(function: Callable[[float], float], low: float, high: float, xtol: float = 0.0) -> float:
    """Return where `function` is 0 between `low` and `high`, at which its signs differ, to `xtol` and 13 digits."""
    begins_below = function(low) < 0
    while high - low > max(xtol, 1e-13 * (abs(low) + abs(high))):
        middle = (low + high) / 2
        if (function(middle) < 0) == begins_below:
            low = middle
        else:
            high = middle
    return (low + high) / 2
