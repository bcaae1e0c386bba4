"""ScienceWorld's open suite: other variations than the published ones, solved by plans, judged by the simulator."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from evalharness.envs.base import InvalidTaskError
from evalharness.envs.sciworld import SPEC
from evalharness.envs.sciworld.adapter import ScienceWorldEnv
from evalharness.envs.sciworld.kinds import EXAMPLE, PUBLISHED, QUOTA
from evalharness.envs.sciworld.open.generator import generate_kind, shape, spell_out
from evalharness.envs.sciworld.open.oracle import play
from evalharness.envs.sciworld.progress import score_progress
from evalharness.envs.sciworld.simulator import Simulator
from evalharness.suites.open import prove, read_frozen_proofs

TASKS = SPEC.suites.load_tasks("open", None, 0)


@pytest.fixture(scope="module")
def env() -> Iterator[ScienceWorldEnv]:
    env = ScienceWorldEnv()
    yield env
    env.close()


def test_there_are_90_pairs_of_26_kinds_none_of_them_published() -> None:
    assert Counter(task.kind for task in TASKS) == QUOTA
    pairs = {(task.payload["task"], task.payload["variation"]) for task in TASKS}
    assert len(pairs) == len(TASKS) == SPEC.suites.expected["open"] == 90
    assert len(QUOTA) >= 26
    published = {(kind, variation) for kind, found in PUBLISHED.items() for variation in found}
    assert len(published) == 90
    assert not pairs & (published | set(EXAMPLE))
    assert {task.labels for task in TASKS} == {"simulator"}


@pytest.mark.data
def test_the_published_pairs_are_those_of_the_labels(published_data: Path) -> None:
    found = {
        (task.payload["task"], task.payload["variation"])
        for task in SPEC.suites.load_tasks("agentboard", published_data, 0)
    }
    assert found == {(kind, variation) for kind, listed in PUBLISHED.items() for variation in listed}


@pytest.mark.slow
def test_every_plan_solves_its_task_in_the_simulator(env: ScienceWorldEnv) -> None:
    for task in TASKS:
        assert prove(env, task) == read_frozen_proofs()[task.id].proof, task.id


def test_a_pouring_is_read_as_the_world_reads_it() -> None:
    """Of the places where `in` may be the action's, the one to which the world gives the same answer."""

    def answer(actions: Sequence[str]) -> str:
        action = actions[-1]
        poured = {"pour cup in art studio in jug", "pour cup in art studio into jug"}
        mixed = {"pour cup in bowl in table", "pour cup into bowl in table"}
        return "poured" if action in poured else "mixed" if action in mixed else "No known action"

    plan = ["go to hall", "pour milk in cup", "pour cup in art studio in jug", "pour cup in bowl in table"]
    assert spell_out(plan, answer) == [
        "go to hall", "pour milk into cup", "pour cup in art studio into jug", "pour cup into bowl in table",
    ]  # fmt: skip
    unread = ["pour this in that in there", "pour this into that in there"]
    assert spell_out(unread, lambda actions: actions[-1]) == unread


def test_no_plan_leaves_a_reading_open() -> None:
    poured = [action for task in TASKS for action in task.payload["plan"] if action.startswith("pour ")]
    assert len(poured) > 10
    assert all(action.count(" into ") == 1 for action in poured)


def test_what_a_goal_asks_to_find_out_is_found_out() -> None:
    """The shortest plan would just name the answer; the one that is kept makes the simulator's experiment."""
    tools = {
        "inclined-plane": "activate stopwatch",
        "measure-melting-point": "use thermometer",
        "test-conductivity": "connect ",
        "use-thermometer": "use thermometer",
    }
    asked = {task.id for task in TASKS if re.match("Your task is to (determine|measure)", task.goal)}
    assert asked == {task.id for task in TASKS if task.kind.startswith(tuple(tools))}
    for task in TASKS:
        if task.id in asked:
            tool = next(tool for kind, tool in tools.items() if task.kind.startswith(kind))
            assert any(action.startswith(tool) for action in task.payload["plan"]), task.id


@pytest.mark.slow
def test_nothing_can_be_left_out_of_a_plan() -> None:
    """Five plans, one of each of five kinds, without each of their actions."""
    simulator = Simulator()
    try:
        for kind in ("chemistry-mix", "find-plant", "lifespan-longest-lived", "melt", "power-component"):
            task = next(task for task in TASKS if task.kind == kind)
            plan = task.payload["plan"]
            assert play(simulator, task, plan).success == len(plan)
            for number in range(len(plan)):
                assert play(simulator, task, plan[:number] + plan[number + 1 :]).success is None
    finally:
        simulator.close()


@pytest.mark.slow
def test_progress_is_the_simulators_score_and_a_wrong_focus_ends_the_task(env: ScienceWorldEnv) -> None:
    task = next(task for task in TASKS if task.kind == "find-animal")
    observation, info = env.reset(options={"task": task})
    assert env.goal == task.goal
    assert observation
    assert info["progress"] == 0.0
    rates = [env.step(action)[4]["progress"] for action in task.payload["plan"]]
    assert rates == sorted(rates)
    assert 0 < rates[-2] < rates[-1] == 1.0
    env.reset(options={"task": task})
    _, _, terminated, _, info = env.step("focus on air")
    assert terminated
    assert (info["success"], info["progress"]) == (False, 0.0)


@pytest.mark.slow
def test_what_is_there_at_the_start_is_no_progress(env: ScienceWorldEnv) -> None:
    """Two turns of nonsense, in every task; 22 of them begin with points in the simulator's own score."""
    for task in TASKS:
        _, info = env.reset(options={"task": task})
        rates = [info["progress"], *(env.step(text)[4]["progress"] for text in ("qwerty", "hocus pocus"))]
        assert rates == [0.0, 0.0, 0.0], task.id
    credited = {task.id: task.payload["start_score"] for task in TASKS if task.payload["start_score"]}
    assert len(credited) == 22
    assert credited["sciworld/open/005"] == pytest.approx(3 / 14)


def test_progress_runs_from_0_to_1_where_the_simulator_starts_with_points(env: ScienceWorldEnv) -> None:
    task = next(task for task in TASKS if task.payload["start_score"])
    env.reset(options={"task": task})
    rates = [env.step(action)[4]["progress"] for action in task.payload["plan"]]
    assert rates == sorted(rates)
    assert rates[-1] == 1.0
    start = task.payload["start_score"]
    assert [score_progress(score, start) for score in (-1.0, 0.0, start, 1.0)] == [0.0, 0.0, 0.0, 1.0]
    assert score_progress((1 + start) / 2, start) == pytest.approx(0.5)


def test_a_task_of_another_version_is_refused(env: ScienceWorldEnv) -> None:
    task = next(task for task in TASKS if task.payload["start_score"])
    for payload in (
        {key: value for key, value in task.payload.items() if key != "start_score"},
        {**task.payload, "start_score": 0.0},
    ):
        with pytest.raises(InvalidTaskError, match="another version"):
            env.reset(options={"task": replace(task, payload=payload)})


@pytest.mark.slow
def test_generating_again_gives_the_frozen_tasks_and_another_seed_others() -> None:
    simulator = Simulator()
    try:
        for kind in ("find-non-living-thing", "chemistry-mix-paint-secondary-color"):
            frozen = [task for task in TASKS if task.kind == kind]
            assert list(generate_kind(simulator, kind, 0, frozen[0].index)) == frozen
        other = next(generate_kind(simulator, "find-non-living-thing", 1, 0))
        assert 3 <= len(other.payload["plan"]) <= 30
        assert other.payload["variation"] not in PUBLISHED["find-non-living-thing"]
    finally:
        simulator.close()


def test_names_do_not_tell_tasks_apart_and_facts_do() -> None:
    def shaped(box: str, substance: str, thing: str = "dove") -> str:
        goal = f"Focus on unknown substance {substance}, then move the {thing} to the {box} box."
        payload = {"task": "find-animal", "plan": [f"move {thing} to {box} box"]}
        return shape(replace(TASKS[0], goal=goal, payload=payload))

    assert shaped("red", "B") == shaped("blue", "K")
    assert shaped("red", "B") != shaped("red", "B", "ant")
