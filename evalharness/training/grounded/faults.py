"""Where an agent's own play went wrong: the world refused a turn, or it repeats a move or loses progress. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from evalharness.records.episode import Episode
from evalharness.results.behaviour.turns import moves

WHY: Mapping[str, str] = MappingProxyType(
    {
        "format": "My last reply had no action that could be read.",
        "invalid": "That did not work.",
        "lost": "That took progress back.",
        "no_effect": "That changed nothing.",
        "repeat": "I did that here before, and it led nowhere.",
    }
)
"""Kind of fault -> what the thought after it says."""


def faults(episode: Episode) -> list[str | None]:
    """The fault of each turn, None where it has none. The first that fits: no action, refused, progress lost, nothing
    changed, or the same move as before on the same last observation, with no progress between the two."""
    found: list[str | None] = []
    made: set[tuple[str, str]] = set()
    before = 0.0
    for turn, move in zip(episode.turns, moves(episode), strict=True):
        if turn.progress > before:
            made.clear()
        if turn.action is None:
            found.append("format")
        elif not turn.valid:
            found.append("invalid")
        elif turn.progress < before:
            found.append("lost")
        elif turn.no_effect:
            found.append("no_effect")
        else:
            found.append("repeat" if move in made else None)
        made.add(move)
        before = turn.progress
    return found


def takeovers(found: Sequence[str | None], most: int, row: int) -> list[int]:
    """After how many turns the teacher takes over: at the end of each of the first `most` runs of faults, and after
    `row` faults of a run that is longer."""
    after: list[int] = []
    run = 0
    for at, fault in enumerate([*found, None]):
        if fault is None and 0 < run < row:
            after.append(at)
        run = 0 if fault is None else run + 1
        if run == row:
            after.append(at + 1)
    return after[:most]
