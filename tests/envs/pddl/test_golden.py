"""Every recorded step of the published PDDL environment comes out the same."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalharness.envs.pddl import SPEC

pytestmark = pytest.mark.data

LISTING = "Valid actions are: "


def _same_observation(action: str, ours: str, theirs: str, sentences: list[str]) -> bool:
    """Listings that the published environment prints in random order compare as multisets."""
    lowered = action.lower()
    if "check" in lowered:
        return ours.startswith(LISTING) and Counter(ours[len(LISTING) :].split(", ")) == Counter(
            theirs.removeprefix(LISTING).split(", ")
        )
    if "look around" in lowered:
        rest = f" {theirs} "
        for sentence in sorted(sentences, key=len, reverse=True):
            if sentence not in rest:
                return False
            rest = rest.replace(sentence, "", 1)
        return not rest.strip() and len(ours) == len(theirs)
    return ours == theirs


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_transcripts(published_data: Path, golden_dir: Path) -> None:
    tasks = SPEC.suites.load_tasks("agentboard", published_data, 0)
    env: Any = SPEC.make(published_data)
    differences: list[str] = []
    steps = 0
    for row in _rows(golden_dir / "pddl.jsonl"):
        task = tasks[row["id"]]
        assert task.payload["file"] == row["problem"]
        observation, info = env.reset(options={"task": task})
        assert (observation, env.goal, info["progress"]) == (row["init_obs"], row["goal"], 0.0)
        for number, step in enumerate(row["steps"]):
            steps += 1
            observation, _, done, _, info = env.step(step["action"])
            sentences = [sentence for sentence, bit in env._sentences if env._state & bit]
            ours = {"progress": info["progress"], "done": done, "valid": info["valid"], "obs": True}
            same = _same_observation(step["action"], observation, step["obs"], sentences)
            theirs = {"progress": step["progress"], "done": step["done"], "valid": step["valid"], "obs": same}
            if ours != theirs or not same:
                differences.append(
                    f"{row['id']} {row['script']} step {number} {step['action']!r}\n"
                    f"  ours   {ours} {observation!r}\n  theirs {theirs} {step['obs']!r}"
                )
        assert info["success"] is row["success"]
    assert not differences, f"{len(differences)} of {steps} steps differ\n" + "\n".join(differences[:5])
    assert steps > 3000


def test_first_valid_actions(published_data: Path, golden_dir: Path) -> None:
    tasks = SPEC.suites.load_tasks("agentboard", published_data, 0)
    env = SPEC.make(published_data)
    for row in _rows(golden_dir / "pddl.actions.jsonl"):
        env.reset(options={"task": tasks[row["id"]]})
        assert env.valid_actions() == sorted(action.strip() for action in row["valid_actions"])


def test_tasks_are_the_published_ones(published_data: Path) -> None:
    tasks = SPEC.suites.load_tasks("agentboard", published_data, 0)
    rows = _rows(published_data / "agentboard" / "pddl" / "test.jsonl")
    assert len(tasks) == SPEC.suites.expected["agentboard"]
    for task, row in zip(tasks, rows, strict=True):
        assert list(task.subgoals) == sorted(row["subgoals"])
        assert task.difficulty == row["difficulty"]
        assert task.kind == row["additional_info"]["subtask"]
    assert Counter(task.kind for task in tasks) == {
        "gripper": 20,
        "blockworld": 10,
        "barman": 20,
        "tyreworld": 10,
    }
    assert len({task.content_hash for task in tasks}) == len(tasks)
