"""Gripper's carrier: one ball after the other, by what the last observation says."""

from __future__ import annotations

import pytest
from seekers import said_by

from evalharness.envs.base import Task
from evalharness.envs.pddl.adapter import PddlTextEnv
from evalharness.envs.pddl.carrying import Carrier, first_unmet, homes, next_action, read
from evalharness.envs.pddl.tasks import load_tasks

GOAL = ("Robby is at rooma.", "ball1 is at rooma.", "ball3 is at roomb.")


def state(*facts: str) -> str:
    return "  ".join([*facts, "Room rooma Room roomb"])


def test_reads_what_an_observation_says() -> None:
    said = read(state("Ball1 is a ball.", "Ball1 is carrying left.", "Right is free.", "Robby is at roomb."))
    assert said.carried == {"ball1": "left"}
    assert said.lies == {"robby": "roomb"}
    assert said.free == ["right"]


def test_the_balls_come_in_the_order_of_the_goal_and_the_robot_last() -> None:
    assert homes(GOAL) == [("ball1", "rooma"), ("ball3", "roomb"), ("robby", "rooma")]
    done = read(state("Ball1 is at rooma.", "Ball3 is at roomb.", "Robby is at roomb."))
    assert first_unmet(homes(GOAL), done) == ("robby", "rooma")


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (("Ball1 is at roomb.", "Left is free.", "Robby is at rooma."), "Move from rooma to roomb."),
        (
            ("Ball1 is at roomb.", "Left is free.", "Robby is at roomb."),
            "Pick up ball1 at roomb with arm left.",
        ),
        (("Ball1 is carrying left.", "Robby is at roomb."), "Move from roomb to rooma."),
        (("Ball1 is carrying left.", "Robby is at rooma."), "drop ball1 rooma left"),
        (("Ball1 is at roomb.", "Ball2 is carrying left.", "Robby is at rooma."), "drop ball2 rooma left"),
        (("Ball1 is at rooma.", "Ball3 is at roomb.", "Robby is at roomb."), "Move from roomb to rooma."),
        (("Ball1 is at rooma.", "Ball3 is at roomb.", "Robby is at rooma."), None),
    ],
)
def test_what_it_does(facts: tuple[str, ...], says: str | None) -> None:
    assert next_action(homes(GOAL), read(state(*facts))) == says


def _play(task: Task) -> tuple[bool, int]:
    env, carrier = PddlTextEnv(), Carrier(task.subgoals)
    text, info = env.reset(options={"task": task})
    for turn in range(1, 31):
        action = said_by(carrier, text, env.valid_actions())
        assert action is not None
        text, _, _, _, info = env.step(action)
        assert info["valid"], action
        if info["success"]:
            return True, turn
    return False, 30


def test_it_solves_most_tasks_with_valid_actions_alone() -> None:
    """17 of the 20 open tasks of seed 0 in 30 turns; here every third of them."""
    tasks = [task for task in load_tasks("open", None, 0) if task.kind == "gripper"][::3]
    played = [_play(task) for task in tasks]
    assert sum(success for success, _ in played) >= len(tasks) - 2
    assert played == [_play(task) for task in tasks]
