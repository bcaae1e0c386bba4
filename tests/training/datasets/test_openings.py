"""Others' records of tasks that models are evaluated on are recognised by names, goals and first observations."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from evalharness.cli import main
from evalharness.envs import specs
from evalharness.training.datasets.conversation import read_data, read_manifest
from evalharness.training.datasets.openings import load_openings

GAME = "json_2.1.1/valid_unseen/look_at_obj_in_light-Bowl-None-DeskLamp-308/trial_T20190907_133919_856963/game.tw-pddl"


def record(text: str = "You stand in a hall.", **more: Any) -> dict[str, Any]:
    said = [{"from": "human", "value": text}, {"from": "gpt", "value": "Action: look"}]
    return {**more, "conversations": said}


def opening(family: str, index: int) -> tuple[str, str]:
    """Goal and first observation of a task of suite seed 0."""
    spec = specs()[family]
    environment = spec.make(None)
    try:
        observation, _ = environment.reset(options={"task": spec.suites.load_tasks("open", None, 0)[index]})
        return environment.goal, observation
    finally:
        environment.close()


NAMED = {
    "an id of ours": record(id="babyai/agentboard/000"),
    "an id of suite seed 0": record(info={"task_id": "pddl/open/003"}),
    "an id with its seed": record(info={"task_id": "pddl/open/003", "suite_seed": 0}),
    "an id as a file's name": record(file="BabyAI-open-000-0.json"),
    "an id in a later answer": {
        "messages": [
            *[{"role": role, "content": "x"} for role in ("user", "assistant") * 4],
            {"role": "user", "content": "pddl/open/003 loaded"},
            {"role": "assistant", "content": "x"},
        ]
    },
    "a game's path": record(game_file=GAME),
    "a game's path in a list": record(files=[GAME]),
    "a game's path in the text": record(f"Load {GAME}."),
    "a game's folder": record(task="trial_T20190907_133919_856963"),
}


@pytest.mark.parametrize("command", ["read", "mix"])
def test_a_record_that_names_an_evaluated_task_stays_out(command: str, tmp_path: Path) -> None:
    path, out = tmp_path / "x.json", tmp_path / "out.jsonl"
    others = [
        record(id="pddl/open-5/003"),
        record(task_id="pddl/open/003", suite_seed=5),
        record("train/game"),
    ]
    path.write_text(json.dumps([*NAMED.values(), *others]))
    assert main(["refine", command, str(path), "-o", str(out)]) == 0
    assert len(list(read_data(out, []))) == len(others)
    manifest = read_manifest(out)
    assert manifest is not None
    excluded = manifest["made"]["excluded"]
    assert sum(excluded["refused"].values()) == len(NAMED)
    assert excluded["by_text"] == len(NAMED) + len(others)
    assert excluded["compared_with"]["by_text"]["suite seed 0"] == {"tasks": 416}
    assert main(["refine", command, str(path), "-o", str(out), "--allow-eval-tasks"]) == 0
    assert len(list(read_data(out, []))) == len(NAMED) + len(others)
    manifest = read_manifest(out)
    assert manifest is not None
    assert "not checked" in manifest["made"]["excluded"]["evaluated_tasks"]


def test_named_suites_that_cannot_be_compared_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "x.json", tmp_path / "out.jsonl"
    path.write_text(json.dumps([record(), record(id="pddl/open-5/003")]))
    assert main(["refine", "read", str(path), "-o", str(out), "--exclude-suite-seeds", "5"]) == 0
    assert "2 without" in capsys.readouterr().err
    assert len(list(read_data(out, []))) == 1


@pytest.mark.parametrize("family", ["alfworld", "babyai", "jericho", "pddl"])
def test_the_first_observation_of_an_evaluated_task_is_recognised(family: str) -> None:
    """Among other words, and set, quoted and marked up in any way."""
    goal, observation = opening(family, 12)
    known = load_openings()
    flat = " ".join(observation.split())
    for text in (
        f"Goal: {goal}\nObservation: {observation}",
        f"Welcome! {goal}. {flat}\nBegin.",
        f"{textwrap.fill(observation, 50)}\nTask: {goal.upper()}",
        f'- **{observation}**\n> "{goal}"',
        f"<obs>{observation}</obs>\\nGoal: {goal}".replace(" ", "  "),
    ):
        assert known.find_suite([text]) == "suite seed 0"
    assert known.find_suite([f"Goal: {goal}\nObservation: You see nothing."]) is None
