"""Compute intervals of a score that is rescaled between a measured floor and a ceiling."""

from __future__ import annotations

from math import sqrt

_Z_95 = 1.959963984540054
_Limits = tuple[float, float]


def limits_of_mean(mean: float, standard_error: float, n: int) -> _Limits:
    """Return the 95 % limits of a mean within 0..1 from its standard error.

    They are Wilson's limits for as many binary trials as have this standard error; for `n` trials if it is 0.
    """
    spread = mean * (1 - mean)
    trials = spread / standard_error**2 if standard_error > 0 and spread > 0 else float(n)
    ratio = _Z_95**2 / trials
    centre, half = mean + ratio / 2, sqrt(ratio * spread + ratio * ratio / 4)
    low, high = (centre - half) / (1 + ratio), (centre + half) / (1 + ratio)
    return max(0.0, min(low, mean)), min(1.0, max(high, mean))


def correct_limits(
    score: float, score_limits: _Limits, floor: float, floor_limits: _Limits, ceiling: float
) -> _Limits | None:
    """Return the 95 % limits of (score - floor) / (ceiling - floor) from the limits of score and floor.

    Score and floor must be independent. The corrected score is 1 - (ceiling - score) / (ceiling - floor). The limits of
    this ratio follow from the limits of numerator and denominator (MOVER-R: Donner & Zou, Statistical Methods in
    Medical Research 21 (2012) 347-359, section 3). Return None if the upper limit of the floor reaches the ceiling.
    """
    missing, room = ceiling - score, ceiling - floor
    least, most = ceiling - floor_limits[1], ceiling - floor_limits[0]
    if least <= 0:
        return None
    down, up = score_limits[1] - score, score - score_limits[0]
    low = _solve(missing, down, room, most - room, -1)
    if low < 0:  # the score is above the ceiling
        low = _solve(missing, down, room, room - least, -1)
    high = _solve(missing, up, room, room - least, 1)
    if high < 0:
        high = _solve(missing, up, room, most - room, 1)
    return 1 - high, 1 - low


def _solve(top: float, top_error: float, bottom: float, bottom_error: float, sign: int) -> float:
    """Return the limit r of the ratio top / bottom: |top - r * bottom| equals hypot(top_error, r * bottom_error)."""
    a, c = bottom**2 - bottom_error**2, top**2 - top_error**2
    if a <= 0:
        return sign * float("inf")
    return (top * bottom + sign * sqrt(max(0.0, (top * bottom) ** 2 - a * c))) / a
