"""The blocks world's builder: to the table, then from the bottom, by what the last observation says."""

from __future__ import annotations

import pytest
from seekers import said_by

from evalharness.envs.base import Task
from evalharness.envs.pddl.adapter import PddlTextEnv
from evalharness.envs.pddl.building import (
    TABLE,
    Builder,
    as_towers,
    decide_block,
    from_the_bottom,
    read_blocks,
)
from evalharness.envs.pddl.tasks import load_tasks

GOAL = ("b2 is on b3.", "b3 is on b4.")


def test_pairs_come_from_the_bottom_and_the_lowest_lies_on_the_table() -> None:
    assert list(from_the_bottom(GOAL).items()) == [("b4", TABLE), ("b3", "b4"), ("b2", "b3")]


@pytest.mark.parametrize(
    ("goal", "towers", "first"),
    [
        (GOAL, "b2 on b3 on b4", "b4"),
        (("b1 is on b2.", "b3 is on b4."), "b1 on b2, b3 on b4", "b2"),
        (("b1 is on b2.", "b3 is on b1."), "b3 on b1 on b2", "b2"),
        (("b1 is on b2.", "b5 is on the table.", "b3 is on b1."), "b1 on b2, b5, b3 on b1", "b2"),
        (("The b1 is clear.", "b5 is on the table."), "b5", "b5"),
    ],
)
def test_the_goal_is_told_as_towers(goal: tuple[str, ...], towers: str, first: str) -> None:
    wanted = from_the_bottom(goal)
    assert as_towers(wanted) == towers
    assert next(iter(wanted)) == first


@pytest.mark.parametrize(
    ("state", "says", "thought"),
    [
        ("B4 is on the table. B3 is on b2. B2 is on the table. Your arm is empty.", "Unstack b3 from b2.",
         "b2 on b3 on b4. b4 to the table, is on the table: yes. b3 to b4, is on b2: no. b3 is clear. b4 is clear. "
         "I take b3 off b2."),
        ("B4 is on the table. B2 is on b4. B3 is on the table. Your arm is empty.", "Unstack b2 from b4.",
         "b2 on b3 on b4. b4 to the table, is on the table: yes. b3 to b4, is on the table: no. b3 is clear. "
         "b4 is under b2. I take b2 off."),
        ("B4 is on the table. B3 is on the table. You are holding b2.", "Putdown b2.",
         "b2 on b3 on b4. b4 to the table, is on the table: yes. b3 to b4, is on the table: no. I hold b2. "
         "It goes to the table."),
        ("B4 is on the table. B3 is on b4. You are holding b2.", "Stack b2 on b3.",
         "b2 on b3 on b4. b4 to the table, is on the table: yes. b3 to b4, is on b4: yes. b2 to b3, is held: no. "
         "I hold b2. "
         "b3 is clear."),
    ],
)  # fmt: skip
def test_what_it_does_and_says(state: str, says: str, thought: str) -> None:
    decision = decide_block(from_the_bottom(GOAL), read_blocks(state))
    assert decision is not None
    assert (decision.action, decision.thoughts) == (says, (thought,))


def _play(task: Task) -> tuple[bool, int]:
    env, builder = PddlTextEnv(), Builder(task.subgoals)
    text, info = env.reset(options={"task": task})
    for turn in range(1, 31):
        action = said_by(builder, text, env.valid_actions())
        assert action is not None
        text, _, _, _, info = env.step(action)
        assert info["valid"], action
        if info["success"]:
            return True, turn
    return False, 30


def test_it_solves_every_task_with_valid_actions_alone() -> None:
    """All ten open tasks of seed 0, in 16.4 turns on average."""
    tasks = [task for task in load_tasks("open", None, 0) if task.kind == "blockworld"]
    played = [_play(task) for task in tasks]
    assert [success for success, _ in played] == [True] * 10
    assert played == [_play(task) for task in tasks]
