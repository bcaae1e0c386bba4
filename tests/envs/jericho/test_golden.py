"""The adapter gives what the published environment gave, step by step, in recorded episodes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalharness.envs import specs
from evalharness.envs.base import Task
from evalharness.envs.jericho.observation import CHECK_PREFIX

pytestmark = pytest.mark.data

UNWRITTEN = "Not written yet."
"""Goal and opening of huntdark in the recordings: a wrong key in the original, deliberately not repeated."""


def transcripts(golden_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (golden_dir / "jericho.jsonl").read_text().splitlines()]


def _task_of(transcript: dict[str, Any], tasks: list[Task]) -> Task:
    task = tasks[transcript["id"]]
    # A recording without labels ends only with the game; with ours it would end at success.
    return task if transcript["labelled"] else replace(task, subgoals=())


def _differences(transcript: dict[str, Any], tasks: list[Task], data: Path) -> list[str]:
    environment = specs()["jericho"].make(data)
    observation, _ = environment.reset(options={"task": _task_of(transcript, tasks)})
    found = []
    if transcript["goal"] != UNWRITTEN and (environment.goal, observation) != (
        transcript["goal"],
        transcript["init_obs"],
    ):
        found.append("goal or opening differ")
    for number, step in enumerate(transcript["steps"]):
        if step["obs"].startswith(CHECK_PREFIX):
            continue  # the original's list is searched with a language model and depends on the hash seed
        observation, _, terminated, _, info = environment.step(step["action"])
        now = {"obs": observation, "done": terminated, "valid": info["published_valid"]}
        if transcript["labelled"]:
            now["progress"] = info["progress"]
        found += [
            f"{transcript['game']}/{transcript['script']} step {number} {step['action']!r}:"
            f" {key} {value!r} != {step[key]!r}"
            for key, value in now.items()
            if value != step[key]
        ]
    environment.close()
    return found


def test_every_recorded_step_is_reproduced(published_data: Path, golden_dir: Path) -> None:
    tasks = specs()["jericho"].suites.load_tasks("agentboard", published_data, 0)
    recorded = transcripts(golden_dir)
    assert len(recorded) >= 40
    differences = [
        line for transcript in recorded for line in _differences(transcript, tasks, published_data)
    ]
    assert not differences, "\n".join(differences[:10])


def test_a_labelled_recording_ends_with_its_recorded_score(published_data: Path, golden_dir: Path) -> None:
    tasks = specs()["jericho"].suites.load_tasks("agentboard", published_data, 0)
    for transcript in transcripts(golden_dir):
        if not transcript["labelled"]:
            continue
        environment = specs()["jericho"].make(published_data)
        _, info = environment.reset(options={"task": tasks[transcript["id"]]})
        rises = []
        for number, step in enumerate(transcript["steps"]):
            if not step["obs"].startswith(CHECK_PREFIX):
                _, reward, _, _, info = environment.step(step["action"])
                if reward > 0:
                    rises.append([number, info["progress"]])
        assert rises == transcript["final"]["score_change"]
        assert info["success"] == transcript["success"]


@pytest.mark.slow
def test_asking_for_actions_is_answered_as_in_the_recordings(published_data: Path, golden_dir: Path) -> None:
    """The same prefix, the help action listed, no turn of the game, and no progress."""
    tasks = specs()["jericho"].suites.load_tasks("agentboard", published_data, 0)
    environment = specs()["jericho"].make(published_data)
    environment.reset(options={"task": tasks[0]})
    answers = set()
    for action in ("check valid actions", "Check available actions.", "check action"):
        observation, reward, terminated, _, info = environment.step(action)
        answers.add(observation)
        assert (reward, terminated, info["valid"]) == (0.0, False, True)
    (answer,) = answers
    assert answer.startswith(CHECK_PREFIX)
    listed = answer.removeprefix(CHECK_PREFIX).split(", ")
    assert "check valid actions" in listed
    assert "get up" in listed
    assert environment.step("get up")[0].startswith("You get out of bed.")
