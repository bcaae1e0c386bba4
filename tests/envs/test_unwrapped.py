"""The suites in their engines' own words: what begins again, and what counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalharness.envs import specs
from evalharness.envs.babyai.levels import LEVELS
from evalharness.envs.sciworld.kinds import VARIATIONS
from evalharness.envs.sciworld.simulator import Simulator
from evalharness.envs.sciworld.tasks import list_unwrapped_tasks
from evalharness.suites.selection import family_tasks


def test_the_table_of_variations_is_the_simulators() -> None:
    simulator = Simulator()
    try:
        found = {}
        for kind in VARIATIONS:
            simulator.load(kind, 0, "")
            with simulator._hold() as shared:
                getattr(shared.server, "taskStr_$eq")(kind)
            found[kind] = (simulator.variations(kind), int(simulator._texts("getVariationsTest")[0]))
    finally:
        simulator.close()
    assert found == dict(VARIATIONS)
    assert len(list_unwrapped_tasks("agentgym", 0)) == 4639
    assert list_unwrapped_tasks("agentgym", 0)[1999].payload["task"] == "test-conductivity"


def test_a_failed_task_of_sciworld_begins_again_with_its_highest_score() -> None:
    [task] = [t for t in list_unwrapped_tasks("unwrapped", 0) if t.kind == "find-animal"]
    env = specs()["sciworld"].make(None)
    try:
        first, _ = env.reset(options={"task": task})
        assert first.startswith("Task Description:\n" + env.goal)
        observation, _, ended, _, info = env.step(
            "focus on air"
        )  # the wrong thing: the simulator fails the task
        assert not ended
        assert observation.endswith("-= Restarting =-\n" + first)
        assert (info["progress"], info["success"]) == (0.0, False)
    finally:
        env.close()


@pytest.mark.data
def test_a_lost_game_begins_again_and_points_are_kept(published_data: Path) -> None:
    spec = specs()["jericho"]
    tasks = {task.kind: task for task in family_tasks(spec, "unwrapped", published_data, 0)}
    env = spec.make(published_data)
    first, _ = env.reset(options={"task": tasks["huntdark"]})
    for _ in range(40):
        observation, _, ended, _, info = env.step("ahead")
        if "Restarting" in observation:
            break
    assert observation.endswith("*** You have died ***\n\n\n\nWould you like to RESTART, RESTORE a saved game, UNDO "
                                "your last move, or QUIT\n\n-= Restarting =-\n" + first)  # fmt: skip
    assert (ended, info["success"]) == (False, False)


@pytest.mark.data
def test_alfworld_is_textworlds_own(published_data: Path) -> None:
    spec = specs()["alfworld"]
    task = family_tasks(spec, "unwrapped", published_data, 0)[0]
    env = spec.make(published_data)
    first, _ = env.reset(options={"task": task})
    assert first.startswith("-= Welcome to TextWorld, ALFRED! =-\n\n")
    assert env.step("check valid actions")[0] == "Nothing happens."
    going = next(action for action in env.valid_actions() if action.startswith("go to"))
    assert env.step(going)[0].startswith("You arrive at loc ")
    for action in env.oracle():
        *_, ended, _, info = env.step(action)
    assert (ended, info["progress"], info["success"]) == (True, 1.0, True)


def test_agentgyms_babyai_lists_its_actions_and_ends_with_more_than_half_a_reward() -> None:
    """Of each level that a plan is known for: the plan succeeds, and ends the game where that took few enough moves."""
    spec, ends = specs()["babyai"], 0
    env = spec.make(None)
    for task in family_tasks(spec, "agentgym", None, 3):
        observation, _ = env.reset(options={"task": task})
        assert observation.endswith(', "check available actions"]')
        plan = env.oracle()
        assert not plan or task.kind in LEVELS
        ended, info = False, dict[str, Any]()
        for action in plan:
            observation, _, ended, _, info = env.step(action)
        if plan:
            assert (info["progress"], info["success"]) == (1.0, True)
            assert "\n The task is completed.\nAvailable actions: [" in observation
            ends += ended
    assert ends >= len(LEVELS) - 1
