"""No family trains an action that the world refused, and a suite that is being made is named on the screen."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from evalharness.envs import specs
from evalharness.play.workers.pool import EnvironmentPool
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import load_prompt
from evalharness.training.grounded.draft import ErrorPlan, Stage
from evalharness.training.grounded.making import FamilyCount, watch_making
from evalharness.training.grounded.replayed import Recipe, make_conversation
from evalharness.training.teachers.teaching import load_teaching

TASKS = {
    "alfworld": (0, 40),
    "babyai": (12, 13),
    "jericho": (10, 11),
    "pddl": (0, 20),
    "sciworld": (40,),  # the simulator's own plan opens a door that is open
}


@pytest.mark.parametrize("family", TASKS)
async def test_no_family_trains_an_action_that_the_world_refused(family: str) -> None:
    spec, world = specs()[family], load_teaching(specs()[family])
    tasks, prompt = spec.suites.load_tasks("open", None, 0), load_prompt(spec)
    pool = EnvironmentPool(spec, None, 1)
    trained = 0
    try:
        async with pool.environment() as environment:
            for task in (tasks[at] for at in TASKS[family]):
                stage = Stage(spec, task, environment, world, PlayedSurface(spec), prompt.system, 30)
                seeker = world.seeker(task)
                clean = await (stage.clean() if seeker is None else stage.play_seeker(seeker))
                conversation = await make_conversation(stage, clean, Recipe(prompt, ErrorPlan(), 0, 0), 0)
                turns = conversation.player_turns
                refused = [
                    turn.content
                    for turn, valid in zip(turns, conversation.metadata["valid"], strict=True)
                    if turn.trained and not valid
                ]
                assert refused == []
                trained += sum(turn.trained for turn in turns)
    finally:
        await pool.close()
    assert trained


def test_a_suite_that_is_being_made_is_named_where_no_terminal_is() -> None:
    screen = io.StringIO()
    counts = {"sciworld": FamilyCount(10, status="making the suite of seed 1: ScienceWorld")}
    with watch_making(counts, {"sciworld": "ScienceWorld"}, Console(file=screen)):
        pass
    assert "ScienceWorld 0/10 (making the suite" in screen.getvalue()
