"""Shorten a plan: omit actions and play it again. The world is a function argument."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Needs = Callable[[Sequence[str]], int | None]
"""Function that plays actions in a new world and returns the number of actions until the goal was reached; None if it
was not reached."""

NOISE = re.compile(r"open .*door.*|look around|inventory|task|(look at|look in|examine) .*")
"""Actions that are frequent in the simulator's own plans, but nearly always unnecessary."""

_WAITS = re.compile(r"wait1?")
# In the simulator's own plans most of these only look, or open doors that are already open.
_SUSPECTS = (
    re.compile(r"open .*door.*"),
    re.compile(r"look around|inventory|task"),
    re.compile(r"(look at|look in|examine) .*"),
    re.compile(r"open .*"),
    re.compile(r"use thermometer .*"),
    _WAITS,
)


_MOST_REPLAYS = 400
"""Maximum number of replays of one plan."""


def shorten(plan: Sequence[str], needs: Needs) -> list[str]:
    """Omit actions until no single action can be omitted, or until `_MOST_REPLAYS` replays were made.

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
    """Replace several actions that watch or wait for one tick by one `wait`, which waits for ten ticks."""
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
