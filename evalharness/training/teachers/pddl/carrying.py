"""A gripper player without privileged information: it compares the room it is in with where each ball belongs.

It drops what belongs here, takes along what does not belong here while a gripper is free, and goes on to the room of
what it carries, else of the first ball of the goal that is not home. All follows from the goal and the last
observation, and after each kind of action each other kind can come: no rhythm can be learned in place of reading. (The
oracle's shortest plans mix the errands of several balls; which ball is next follows from all of the plan that is still
to come, which a reader of thoughts cannot see.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from evalharness.training.teachers.teaching import Decision

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


def homes(subgoals: Sequence[str]) -> dict[str, str]:
    """Ball or robot -> room, in the order of the goal."""
    return {what: room for text in subgoals for what, room in _LIES.findall(text.lower())}


def decide(wanted: dict[str, str], state: State) -> Decision | None:
    """The first comparison that asks for something; None when all is where it belongs.

    What is compared stands side by side before the verdict: the ball's goal and room, then its room and Robby's. A
    small model that writes the verdict first ("ball1 here") guesses it; one that must look back a sentence misreads it.
    """
    here = state.lies[ROBOT]
    balls = {what: room for what, room in wanted.items() if what != ROBOT}
    said = [f"Robby {here}."]
    for ball, gripper in state.carried.items():
        if ball not in balls:
            continue
        home = balls[ball]
        said.append(f"I carry {ball} to {home}, Robby {here}: {'here' if home == here else 'away'}.")
        if home == here:
            return decided(f"drop {ball} {here} {gripper}", "drop: same room", said, f"I drop {ball}.")
    away: list[tuple[str, str]] = []
    if state.free:
        said.append(f"{state.free[0]} is free.")
        for ball, home in balls.items():
            if (place := state.lies.get(ball)) is None:
                continue
            if place == home:
                said.append(f"{ball} to {home}, at {place}: home.")
            elif place == here:
                said.append(f"{ball} to {home}, at {place}, Robby {here}: here.")
                action = f"Pick up {ball} at {here} with arm {state.free[0]}."
                return decided(action, "pick: not its room", said, f"I pick up {ball}.")
            else:
                said.append(f"{ball} to {home}, at {place}, Robby {here}: away.")
                away.append((ball, place))
    return _elsewhere(balls, wanted.get(ROBOT), state, said, away)


def _elsewhere(
    balls: dict[str, str], end: str | None, state: State, said: list[str], away: list[tuple[str, str]]
) -> Decision | None:
    """Nothing is to be done here: to the room of what is carried, of a ball that is not home, or of the goal."""
    here = state.lies[ROBOT]
    if not state.free:
        said.append("No gripper is free.")
    for ball, gripper in state.carried.items():
        if ball in balls:
            return decided(
                f"Move from {here} to {balls[ball]}.", "move: with a ball", said, f"I bring {ball}."
            )
        return decided(f"drop {ball} {here} {gripper}", "drop: in the way", said, f"I drop {ball}.")
    for ball, place in away:
        return decided(f"Move from {here} to {place}.", "move: to a ball", said, f"I go to {ball}.")
    if end is None or end == here:
        return None
    return decided(f"Move from {here} to {end}.", "move: the robot's goal", said, f"I must end in {end}.")


def decided(action: str, rule: str, said: Sequence[str], verdict: str) -> Decision:
    return Decision(action, rule, " ".join([*said, verdict]))


class Carrier:
    """One episode's player. Ask `next`, play it, and say with `saw` what came of it."""

    reads_valid = True

    def __init__(self, subgoals: Sequence[str]) -> None:
        self._wanted = homes(subgoals)

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """What it does next, in the letters of the valid action; None when it is at a loss."""
        decision = decide(self._wanted, read(observation))
        if decision is None:
            return None
        action = next((text for text in valid if text.strip() == decision.action), None)
        return None if action is None else Decision(action, decision.rule, decision.thought)

    def saw(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        """Nothing: the last observation says all that decides."""
