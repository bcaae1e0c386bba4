"""What a draw of games with repetition makes of a success rate."""

from __future__ import annotations

import math

from scipy.special import bdtr, bdtrik

from evalharness.stats.intervals import Interval


def repeated_draw(rate: float, draws: int) -> Interval:
    """Where the mean of `draws` games lies in 95 of 100 draws, each game drawn by itself and solved at `rate` (0..1):
    the 2.5 % and 97.5 % quantiles of a binomial distribution, as fractions."""
    return _quantile(0.025, draws, rate) / draws, _quantile(0.975, draws, rate) / draws


def _quantile(share: float, n: int, rate: float) -> int:
    """The smallest count whose cumulated probability reaches `share`."""
    if rate in (0.0, 1.0):
        return round(n * rate)
    found = bdtrik(share, n, rate)
    count = 0 if math.isnan(found) else max(0, math.floor(found))
    while count > 0 and bdtr(count - 1, n, rate) >= share:
        count -= 1
    while count < n and bdtr(count, n, rate) < share:
        count += 1
    return count
