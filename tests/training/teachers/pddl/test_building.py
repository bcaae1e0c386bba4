"""The blocks world's builder: to the table, then from the bottom, by what the last observation says."""

from __future__ import annotations

import pytest
from seekers import said_by

from evalharness.envs.base import Task
from evalharness.envs.pddl.adapter import PddlTextEnv
from evalharness.envs.pddl.tasks import load_tasks
from evalharness.training.teachers.pddl.building import Builder, decide_block, places, read_blocks

GOAL = ("b2 is on b3.", "b3 is on b4.", "The b2 is clear.")
FLAT = "B2 is on the table. B3 is on the table. B4 is on the table. "


def test_the_goals_places_are_in_its_order() -> None:
    assert list(places(GOAL).items()) == [("b2", "b3"), ("b3", "b4")]


@pytest.mark.parametrize(
    ("state", "says", "thought"),
    [
        ("B2 is on the table. B3 is on b2. B4 is on the table. The b3 is clear. The b4 is clear. Your arm is empty.",
         "Unstack b3 from b2.", "b3 on b2, to b4: no. I unstack b3."),
        ("B2 is on b3. B3 is on the table. B4 is on the table. The b2 is clear. The b4 is clear. Your arm is empty.",
         "Unstack b2 from b3.", "b2 on b3, to b3: yes. b3 on the table, to b4: no. I unstack b2."),
        (FLAT + "The b2 is clear. The b3 is clear. The b4 is clear. Your arm is empty.",
         "Pickup b3.",
         "b2 on the table, to b3: no. b3 on the table, to b4: no. b4 on the table, to the table: yes. "
         "b2 to b3: b3 first. b3 to b4: b4 is in place. I pick up b3."),
        ("B2 is on the table. B3 is on b4. B4 is on the table. The b2 is clear. The b3 is clear. Your arm is empty.",
         "Pickup b2.",
         "b2 on the table, to b3: no. b3 on b4, to b4: yes. b4 on the table, to the table: yes. "
         "b2 to b3: b3 is in place. I pick up b2."),
        ("B2 is on the table. B3 is on b4. B4 is on the table. B8 is on the table. B9 is on b8. "
         "The b2 is clear. The b3 is clear. The b9 is clear. Your arm is empty.",
         "Pickup b2.",
         "b2 on the table, to b3: no. b3 on b4, to b4: yes. b4 on the table, to the table: yes. "
         "b9 on b8: not in the goal. b2 to b3: b3 is in place. I pick up b2."),
    ],
)  # fmt: skip
def test_what_it_does_and_says(state: str, says: str, thought: str) -> None:
    decision = decide_block(places(GOAL), read_blocks(state))
    assert decision is not None
    assert (decision.action, decision.thoughts) == (says, (thought,))


@pytest.mark.parametrize(
    ("before", "says", "thought"),
    [
        (FLAT, "Stack b3 on b4.", "I hold b3 from the table. It goes to b4."),
        (FLAT.replace("B3 is on the table", "B3 is on b2"), "Putdown b3.",
         "I hold b3 from a tower. It goes to the table."),
        (None, "Putdown b3.", "I hold b3 from somewhere. It goes to the table."),
    ],
)  # fmt: skip
def test_a_held_block_goes_where_it_belongs_or_to_the_table_by_where_it_came_from(
    before: str | None, says: str, thought: str
) -> None:
    state = "B2 is on the table. B4 is on the table. The b2 is clear. The b4 is clear. You are holding b3."
    decision = decide_block(places(GOAL), read_blocks(state), before and read_blocks(before))
    assert decision is not None
    assert (decision.action, decision.thoughts) == (says, (thought,))


def test_a_tower_of_which_a_block_must_be_clear_comes_down() -> None:
    state = (
        "B1 is on the table. B2 is on b1. B3 is on b2. B4 is on the table. B5 is on the table. "
        "The b3 is clear. The b4 is clear. The b5 is clear. Your arm is empty."
    )
    builder = Builder(["b5 is on b4.", "The b2 is clear."])
    assert said_by(builder, state, ["Unstack b3 from b2.", "Pickup b5."]) == "Unstack b3 from b2."


def test_a_block_is_not_put_on_one_that_is_not_in_place_though_it_came_from_the_table() -> None:
    """As where a model picked it up."""
    state = "B3 is on the table. B4 is on the table. The b3 is clear. The b4 is clear. You are holding b2."
    decision = decide_block(places(GOAL), read_blocks(state), read_blocks(FLAT))
    assert decision is not None
    assert decision.action == "Putdown b2."


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
    """All ten open tasks of seed 0, in 17.2 turns on average."""
    tasks = [task for task in load_tasks("open", None, 0) if task.kind == "blockworld"]
    played = [_play(task) for task in tasks]
    assert [success for success, _ in played] == [True] * 10
    assert sum(turns for _, turns in played) == 172
    assert played == [_play(task) for task in tasks]
