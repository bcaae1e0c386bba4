"""Making a plan shorter by leaving actions out and playing it again. Pure: the world is a function."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Needs = Callable[[Sequence[str]], int | None]
"""Plays actions in a fresh world; how many of them it takes to reach the goal, or None when they do not."""

NOISE = re.compile(r"open .*door.*|look around|inventory|task|(look at|look in|examine) .*")
"""What the simulator's own plans are full of and can nearly always do without."""

_WAITS = re.compile(r"wait1?")
# In the simulator's own plans most of these only look, or open doors that stand open already.
_SUSPECTS = (
    re.compile(r"open .*door.*"),
    re.compile(r"look around|inventory|task"),
    re.compile(r"(look at|look in|examine) .*"),
    re.compile(r"open .*"),
    re.compile(r"use thermometer .*"),
    _WAITS,
)


_MOST_REPLAYS = 400
"""Of one plan."""


def shorten(plan: Sequence[str], needs: Needs) -> list[str]:
    """A plan no longer than `plan` in which no single action can be left out, after at most `_MOST_REPLAYS`.

    Raises ValueError when `plan` itself does not reach the goal.
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
            found = attempt(best[:start] + best[start + size :])
            if found is None:
                start += size
            else:
                best, shorter = found, True
        if size > 1:
            size //= 2
        elif not shorter or attempts >= _MOST_REPLAYS:
            return best


def _longer_waits(plan: list[str], attempt: Callable[[list[str]], list[str] | None]) -> list[str]:
    """Put one `wait`, which is ten ticks, in the place of a run of watching and of single ticks."""
    idle = re.compile(r"wait1|look around|(look at|look in|examine|use thermometer) .*")
    best, start = plan, 0
    while start < len(best):
        end = start
        while end < len(best) and idle.fullmatch(best[end]):
            end += 1
        for stop in range(end, start + 1, -1):
            found = attempt([*best[:start], "wait", *best[stop:]])
            if found is not None:
                best = found
                break
        start += 1
    return best
