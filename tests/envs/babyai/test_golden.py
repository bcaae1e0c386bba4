"""BabyAI plays the published benchmark's own transcripts identically."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalharness.envs.babyai import SPEC
from evalharness.envs.base import Task, TextEnv

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def tasks(published_data: Path) -> list[Task]:
    return SPEC.suites.load_tasks("agentboard", published_data, 0)


@pytest.fixture(scope="module")
def env(published_data: Path) -> TextEnv:
    return SPEC.make(published_data)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def test_every_labelled_first_observation_is_reproduced(
    tasks: list[Task], env: TextEnv, published_data: Path
) -> None:
    labels = list(_lines(published_data / "agentboard" / "babyai" / "test.jsonl"))
    different = [
        task.id
        for task, label in zip(tasks, labels, strict=True)
        if env.reset(options={"task": task})[0] != label["additional_info"]["init_obs"]
    ]
    assert different == []


def test_every_first_list_of_actions_is_reproduced(tasks: list[Task], env: TextEnv, golden_dir: Path) -> None:
    for row in _lines(golden_dir / "babyai.actions.jsonl"):
        env.reset(options={"task": tasks[row["id"]]})
        assert env.step("check valid actions")[0] == row["check_valid_actions_obs"]
        assert env.valid_actions() == sorted(row["valid_actions"])


def _replay(env: TextEnv, task: Task, transcript: dict[str, Any]) -> str | None:
    """The first difference between our world and a transcript, in words."""
    observation, _ = env.reset(options={"task": task})
    where = f"{task.id} {transcript['script']}"
    if (observation, env.goal, task.goal) != (transcript["init_obs"], transcript["goal"], transcript["goal"]):
        return f"{where}: start\n ours     {env.goal!r} {observation!r}"
    for number, step in enumerate(transcript["steps"]):
        before = observation
        observation, _, done, _, info = env.step(step["action"])
        ours = (observation, info["progress"], done, info["valid"])
        published = (step["obs"], step["progress"], step["done"], step["valid"])
        if ours != published:
            return (
                f"{where}: step {number} {step['action']!r} after {before!r}"
                f"\n ours      {ours}\n published {published}"
            )
    if info["success"] != transcript["success"]:
        return f"{where}: success {info['success']}, published {transcript['success']}"
    return None


def test_transcripts_replay_identically(tasks: list[Task], env: TextEnv, golden_dir: Path) -> None:
    transcripts = list(_lines(golden_dir / "babyai.jsonl"))
    assert transcripts
    differences = [found for row in transcripts if (found := _replay(env, tasks[row["id"]], row)) is not None]
    shown = "\n".join(differences[:5])
    assert not differences, f"{len(differences)} of {len(transcripts)} transcripts differ:\n{shown}"


def test_of_equally_short_ways_the_one_counts_whose_squares_were_reached_last(
    tasks: list[Task], env: TextEnv, golden_dir: Path
) -> None:
    """The walk of `babyai-110.jsonl`: at step 34 two ways around a wall are equally short, and a square of the one is
    reached twice. The search goes on from it twice, so that this way is the last to arrive where both meet."""
    rows = list(_lines(golden_dir / "babyai-110.jsonl"))
    assert [row["steps"][34]["action"] for row in rows] == ["go to yellow closed door 1"]
    assert [found for row in rows if (found := _replay(env, tasks[row["id"]], row)) is not None] == []


@pytest.mark.slow
def test_the_oracle_solves_every_published_task(tasks: list[Task], env: TextEnv) -> None:
    """By the label, by the simulator, and with full progress; the longest plan takes 14 turns."""
    for task in tasks:
        start = env.reset(options={"task": task})
        plan = env.oracle()
        assert 1 <= len(plan) <= 14, task.id
        assert env.reset(options={"task": task}) == start
        for action in plan:
            _, _, terminated, _, info = env.step(action)
        assert (terminated, info["success"], info["solved"], info["progress"]) == (True, True, True, 1), (
            task.id
        )


def test_opening_the_goal_door_by_going_through_it_solves_the_mission_unnoticed(
    tasks: list[Task], env: TextEnv
) -> None:
    """The published rule looks at the last move only, and the open door is then underfoot, out of sight."""
    for index in (48, 49, 50, 51):
        env.reset(options={"task": tasks[index]})
        plan = env.reference_plans()["mission"]
        assert plan[-1].startswith("toggle and go through red")
        for action in plan:
            _, _, terminated, _, info = env.step(action)
        assert info["solved"]
        assert not info["success"]
        assert not terminated
