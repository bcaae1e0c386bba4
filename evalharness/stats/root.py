"""Find the root of a function. Importing scipy.optimize for it would take longer than the computations of a command."""

from __future__ import annotations

from collections.abc import Callable


def find_root(function: Callable[[float], float], low: float, high: float, xtol: float = 0.0) -> float:
    """Return the root of `function` by bisection, to `xtol` and 13 digits. Signs at `low` and `high` must differ."""
    begins_below = function(low) < 0
    while high - low > max(xtol, 1e-13 * (abs(low) + abs(high))):
        middle = (low + high) / 2
        if (function(middle) < 0) == begins_below:
            low = middle
        else:
            high = middle
    return (low + high) / 2
