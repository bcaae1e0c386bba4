"""What evaluations play is never trained on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.envs import specs
from evalharness.envs.base import Task, TaskSuites
from evalharness.suites.excluded import EVALUATED, PUBLISHED, load_excluded
from evalharness.training.grounded.grounded import DataRequest, check

SEED = 100
FAMILIES = ("alfworld", "babyai", "jericho", "pddl", "sciworld")


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_suite_seed_0_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="trained on"):
        check(DataRequest(families=("pddl",), suite_seed=0, samples=1))
    path = tmp_path / "x.jsonl"
    assert main(["refine", "grounded", "--suite-seed", "0", "-n", "5", "-o", str(path)]) == 2
    assert "suite seed 0" in capsys.readouterr().err
    assert not path.exists()


def test_a_task_of_suite_seed_0_under_another_number_is_refused(clean_home: Path, family: str) -> None:
    spec = specs()[family]
    found = load_excluded(spec, None)
    for task in spec.suites.load_tasks("open", None, 0)[:3]:
        disguised = replace(task, index=990, id=f"{family}/open/990", difficulty="hard")
        assert disguised.content_hash != task.content_hash
        assert found.check(disguised) == EVALUATED
    assert found.refused == {EVALUATED: 3}


def test_a_household_with_other_numbers_is_the_same_task(clean_home: Path) -> None:
    spec = specs()["alfworld"]
    found = load_excluded(spec, None)
    task = spec.suites.load_tasks("open", None, 0)[0]
    text = json.dumps(dict(task.payload))
    thing = f"{task.payload['object']} 1"
    renamed = json.loads(text.replace(f'"{thing}"', f'"{task.payload["object"]} 9"'))
    assert renamed != dict(task.payload)
    assert found.check(replace(task, payload=renamed)) == EVALUATED


def test_nothing_is_taken_twice(clean_home: Path) -> None:
    spec = specs()["pddl"]
    found = load_excluded(spec, None)
    assert spec.suites.generate is not None
    task = next(iter(spec.suites.generate(SEED)))
    assert found.check(task) is None
    assert found.check(replace(task, index=7)) == "taken already"


def test_a_published_suite_of_any_name_is_compared() -> None:
    task = Task("pddl/other/000", "pddl", "other", 0, "g", "easy", "k")
    spec = replace(specs()["pddl"], suites=TaskSuites({"other": 1}, lambda suite, data, seed: [task]))
    found = load_excluded(spec, None)
    assert found.check(replace(task, id="pddl/open/001", suite="open", index=1)) == PUBLISHED
    assert found.compared[PUBLISHED]["tasks"] == 1


@pytest.mark.data
def test_a_published_task_is_refused(published_data: Path, family: str) -> None:
    spec = specs()[family]
    found = load_excluded(spec, published_data)
    task = spec.suites.load_tasks("agentboard", published_data, 0)[1]
    assert found.check(replace(task, suite="open", id=f"{family}/open/001")) == PUBLISHED
    assert found.compared[PUBLISHED]["tasks"] == spec.suites.expected["agentboard"]


@pytest.mark.slow
def test_a_suite_of_all_that_a_simulator_has_is_not_kept_away_from() -> None:
    """AgentGym plays every variation of 23 kinds of ScienceWorld: nothing would be left to train on."""
    spec = specs()["sciworld"]
    assert spec.suites.whole == {"agentgym"}
    assert spec.suites.generate_kinds is not None
    known = load_excluded(spec, None)
    assert [known.check(task) for task in spec.suites.generate_kinds(100, ["find-non-living-thing"])] == [
        None
    ] * 3
