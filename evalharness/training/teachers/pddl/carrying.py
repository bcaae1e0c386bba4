"""A rule-based agent for gripper tasks: it compares the robot's room with the room where each ball belongs.

The agent drops carried balls that belong in this room, and picks up balls that belong elsewhere while a gripper is
free. Then it moves to the room where a carried ball belongs, or to the first ball that is in a wrong room. Each
decision follows from the goal and the last observation. The oracle's shortest plans make worse training data: they
transport several balls at once, and the reason for the next action lies in later actions, which a model cannot see.
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


class RoomState(NamedTuple):
    """What an observation says about the rooms, in lower case."""

    lies: dict[str, str]
    """Ball or robot -> the room that it is in."""
    carried: dict[str, str]
    """Ball -> gripper."""
    free: list[str]
    """Free grippers, in the order of the observation."""


def read_state(observation: str) -> RoomState:
    text = observation.lower()
    return RoomState(dict(_LIES.findall(text)), dict(_CARRIED.findall(text)), _FREE.findall(text))


def read_homes(subgoals: Sequence[str]) -> dict[str, str]:
    """Return ball or robot -> the room where it belongs, in the order of the goal."""
    return {what: room for text in subgoals for what, room in _LIES.findall(text.lower())}


def decide(wanted: dict[str, str], state: RoomState) -> Decision | None:
    """Compare the balls one by one, and return the first action needed; None if everything is where it belongs.

    In the thought, both compared rooms stand directly before the verdict ("ball1 to roomb, at rooma: away."). A small
    model guesses the verdict if it comes first, and misreads a room that stands one sentence earlier.
    """
    here = state.lies[ROBOT]
    balls = {what: room for what, room in wanted.items() if what != ROBOT}
    sentences = [f"Robby {here}."]
    for ball, gripper in state.carried.items():
        if ball not in balls:
            continue
        home = balls[ball]
        sentences.append(f"I carry {ball} to {home}, Robby {here}: {'here' if home == here else 'away'}.")
        if home == here:
            return make_decision(
                f"drop {ball} {here} {gripper}", "drop: same room", sentences, f"I drop {ball}."
            )
    away: list[tuple[str, str]] = []
    if state.free:
        sentences.append(f"{state.free[0]} is free.")
        for ball, home in balls.items():
            if (place := state.lies.get(ball)) is None:
                continue
            if place == home:
                sentences.append(f"{ball} to {home}, at {place}: home.")
            elif place == here:
                sentences.append(f"{ball} to {home}, at {place}, Robby {here}: here.")
                action = f"Pick up {ball} at {here} with arm {state.free[0]}."
                return make_decision(action, "pick: not its room", sentences, f"I pick up {ball}.")
            else:
                sentences.append(f"{ball} to {home}, at {place}, Robby {here}: away.")
                away.append((ball, place))
    return _leave_room(balls, wanted.get(ROBOT), state, sentences, away)


def _leave_room(
    balls: dict[str, str], end: str | None, state: RoomState, why: list[str], away: list[tuple[str, str]]
) -> Decision | None:
    """Return the next action if no ball can be dropped or picked up in this room: a move towards a ball's room or the
    robot's goal, or dropping a ball that is not in the goal."""
    here = state.lies[ROBOT]
    if not state.free:
        why.append("No gripper is free.")
    for ball, gripper in state.carried.items():
        if ball in balls:
            return make_decision(
                f"Move from {here} to {balls[ball]}.", "move: with a ball", why, f"I bring {ball}."
            )
        return make_decision(f"drop {ball} {here} {gripper}", "drop: in the way", why, f"I drop {ball}.")
    for ball, place in away:
        return make_decision(f"Move from {here} to {place}.", "move: to a ball", why, f"I go to {ball}.")
    if end is None or end == here:
        return None
    return make_decision(
        f"Move from {here} to {end}.", "move: the robot's goal", why, f"I must end in {end}."
    )


def make_decision(action: str, rule: str, why: Sequence[str], verdict: str) -> Decision:
    return Decision(action, rule, " ".join([*why, verdict]))


class Carrier:
    reads_valid = True

    def __init__(self, subgoals: Sequence[str]) -> None:
        self._wanted = read_homes(subgoals)

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """Return the next action exactly as in `valid`, including blanks; None if no rule applies."""
        decision = decide(self._wanted, read_state(observation))
        if decision is None:
            return None
        action = next((text for text in valid if text.strip() == decision.action), None)
        return None if action is None else Decision(action, decision.rule, decision.thought)

    def observe(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        """Do nothing: each decision follows from the last observation."""
