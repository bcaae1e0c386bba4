"""Shorten a plan: leave out actions, and play the rest to check that it still reaches the goal."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Needs = Callable[[Sequence[str]], int | None]
"""Function that plays actions from the start, and returns after how many of them the goal is reached; None: never."""

NOISE = re.compile(r"open .*door.*|look around|inventory|task|(look at|look in|examine) .*")
"""Actions that are frequent in the simulator's own solutions, but are nearly always unnecessary."""

_WAITS = re.compile(r"wait1?")
# Actions that are tried first, because they are often unnecessary in the simulator's own solutions.
_SUSPECTS = (
    re.compile(r"open .*door.*"),
    re.compile(r"look around|inventory|task"),
    re.compile(r"(look at|look in|examine) .*"),
    re.compile(r"open .*"),
    re.compile(r"use thermometer .*"),
    _WAITS,
)


_MOST_REPLAYS = 400
"""Maximum number of times that `shorten` plays variants of a plan."""


def shorten(plan: Sequence[str], needs: Needs) -> list[str]:
    """Leave out actions until every single action is necessary, or until `_MOST_REPLAYS` variants were played.

    Raise ValueError if `plan` itself does not reach the goal.
    """
    attempts = 0

    def attempt(candidate: list[str]) -> list[str] | None:
        nonlocal attempts
        if attempts >= _MOST_REPLAYS:
            return None
        attempts += 1
        length = needs(candidate)
        return None if length is None else candidate[:length]

    best = attempt(list(plan))
    if best is None:
        raise ValueError("the plan does not reach its goal")
    for suspect in _SUSPECTS:
        rest = [action for action in best if not suspect.fullmatch(action)]
        if len(rest) < len(best):
            best = attempt(rest) or best
    best = _longer_waits(best, attempt)
    size = max(1, len(best) // 4)
    while True:
        start, shorter = 0, False
        while start < len(best):
            shortened = attempt(best[:start] + best[start + size :])
            if shortened is None:
                start += size
            else:
                best, shorter = shortened, True
        if size > 1:
            size //= 2
        elif not shorter or attempts >= _MOST_REPLAYS:
            return best


def _longer_waits(plan: list[str], attempt: Callable[[list[str]], list[str] | None]) -> list[str]:
    """Replace sequences of actions that only look or wait by one `wait`, which takes ten time steps instead of one."""
    idle = re.compile(r"wait1|look around|(look at|look in|examine|use thermometer) .*")
    best, start = plan, 0
    while start < len(best):
        end = start
        while end < len(best) and idle.fullmatch(best[end]):
            end += 1
        for stop in range(end, start + 1, -1):
            shortened = attempt([*best[:start], "wait", *best[stop:]])
            if shortened is not None:
                best = shortened
                break
        start += 1
    return best
