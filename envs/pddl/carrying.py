"""A gripper player without privileged information: one ball after the other, in the order of the goal.

The oracle's shortest plans mix the errands of several balls; which ball is next follows from all of the plan that is
still to come, which a reader of thoughts cannot see. Here it follows from the goal and the last observation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from evalharness.envs.teaching import Decision

_LIES = re.compile(r"\b([A-Za-z]+\d*) is at ([a-z]+)")
_CARRIED = re.compile(r"\b([A-Za-z]+\d+) is carrying ([a-z]+)")
_FREE = re.compile(r"\b([A-Za-z]+) is free")
ROBOT = "robby"


class State(NamedTuple):
    """What an observation says, in lower case."""

    lies: dict[str, str]
    """Ball, or the robot -> room."""
    carried: dict[str, str]
    """Ball -> gripper."""
    free: list[str]
    """Grippers, in the order of the observation."""


def read(observation: str) -> State:
    text = observation.lower()
    return State(dict(_LIES.findall(text)), dict(_CARRIED.findall(text)), _FREE.findall(text))


def homes(subgoals: Sequence[str]) -> list[tuple[str, str]]:
    """(ball or robot, room) in the order of the goal; the robot last, whose way must not end before the balls'."""
    found = [match for text in subgoals for match in _LIES.findall(text.lower())]
    return sorted(found, key=lambda pair: pair[0] == ROBOT)


def first_unmet(wanted: Sequence[tuple[str, str]], state: State) -> tuple[str, str] | None:
    return next(((what, room) for what, room in wanted if state.lies.get(what) != room), None)


def next_action(wanted: Sequence[tuple[str, str]], state: State) -> str | None:
    """What brings the first of `wanted` that is not in its room nearer to it; None when all are."""
    unmet, here = first_unmet(wanted, state), state.lies[ROBOT]
    if unmet is None:
        return None
    what, home = unmet
    if what == ROBOT:
        return f"Move from {here} to {home}."
    if (gripper := state.carried.get(what)) is not None:
        return f"drop {what} {home} {gripper}" if here == home else f"Move from {here} to {home}."
    if not state.free:
        ball, gripper = min(state.carried.items(), key=lambda pair: pair[1])
        return f"drop {ball} {here} {gripper}"
    if (place := state.lies[what]) == here:
        return f"Pick up {what} at {here} with arm {state.free[0]}."
    return f"Move from {here} to {place}."


class Carrier:
    """One episode's player. Ask `next`, play it, and say with `saw` what came of it."""

    reads_valid = True

    def __init__(self, subgoals: Sequence[str]) -> None:
        self._wanted = homes(subgoals)

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """What it says next, out of the valid actions; None when it is at a loss."""
        said = next_action(self._wanted, read(observation))
        found = next((text for text in valid if text.strip() == said), None)
        return None if found is None else Decision(found, found.split()[0].lower())

    def saw(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        """Nothing: every observation is the whole state."""
