"""The adapter answers as the published benchmark did, step by step, over every recorded transcript."""

import json
from pathlib import Path
from typing import Any

import pytest

from evalharness.envs.alfworld import SPEC

pytestmark = pytest.mark.data

SHOWN = 3
"""How many differences a failure prints."""


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_every_recorded_step_is_reproduced(published_data: Path, golden_dir: Path) -> None:
    """Observation, progress, done and grounding of each step; goal, first observation and final scores."""
    tasks = SPEC.suites.load_tasks("agentboard", published_data, 0)
    env = SPEC.make(published_data)
    transcripts = _lines(golden_dir / "alfworld.jsonl")
    differences: list[str] = []
    for transcript in transcripts:
        observation, info = env.reset(options={"task": tasks[transcript["id"]]})
        where = f"{transcript['id']} {transcript['script']}"
        if (observation, env.goal) != (transcript["init_obs"], transcript["goal"]):
            differences.append(f"{where}: starts with {observation!r}, goal {env.goal!r}")
        for number, step in enumerate(transcript["steps"]):
            observation, _, done, _, info = env.step(step["action"])
            ours = (observation, info["progress"], done, info["valid"])
            theirs = (step["obs"], step["progress"], step["done"], step["valid"])
            if ours != theirs:
                differences.append(f"{where} step {number} {step['action']!r}:\n  {ours}\n  {theirs}")
        if (info["success"], info["progress"]) != (
            transcript["success"],
            transcript["final"]["progress_rate"],
        ):
            differences.append(f"{where}: ends with {info}")
    assert transcripts
    assert not differences, f"{len(differences)} differences\n" + "\n".join(differences[:SHOWN])


@pytest.mark.slow
def test_the_commands_offered_at_the_start_are_the_recorded_ones(
    published_data: Path, golden_dir: Path
) -> None:
    tasks = SPEC.suites.load_tasks("agentboard", published_data, 0)
    env = SPEC.make(published_data)
    for recorded in _lines(golden_dir / "alfworld.actions.jsonl"):
        env.reset(options={"task": tasks[recorded["id"]]})
        wanted = sorted({*recorded["admissible_at_reset"], "look", "check valid actions"})
        assert env.valid_actions() == wanted, recorded["id"]
