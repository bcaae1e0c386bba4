"""`evalharness data suite build`: new open suites are proven, frozen, the same bytes anywhere, and found by `run`."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import evalharness, surroundings

from evalharness.base.errors import UserError
from evalharness.envs import specs
from evalharness.envs.base import EnvSpec, Task, tasks_hash
from evalharness.envs.pddl.problem import make_task
from evalharness.suites import open as suites
from evalharness.suites.selection import family_tasks

ALFWORLD = specs()["alfworld"]
SEED = 11


def with_suites(spec: EnvSpec, **changed: Any) -> EnvSpec:
    return replace(spec, suites=replace(spec.suites, **changed))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], Path]:
    """A home in which the ALFWorld suite of seed 11 has been built."""
    folder = tmp_path_factory.mktemp("suite")
    environment = {**surroundings(folder), "PYTHONHASHSEED": "1"}
    done = evalharness(environment, "data", "suite", "build", "--suite-seed", SEED, "--tasks", "alfworld")
    assert done.returncode == 0, done.stderr
    assert "134 tasks" in done.stdout
    return environment, folder / "home" / "suites" / f"open-{SEED}" / "alfworld.jsonl"


@pytest.mark.slow
def test_two_builds_write_the_same_bytes(built: tuple[dict[str, str], Path], tmp_path: Path) -> None:
    environment, file = built
    done = evalharness(
        {**environment, "PYTHONHASHSEED": "2"}, "data", "suite", "build", "--suite-seed", SEED, "--tasks", "alfworld",
        "-o", tmp_path, "--proofs", tmp_path / "proofs.csv", "--json", tmp_path / "report.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "alfworld.jsonl").read_bytes() == file.read_bytes()
    head, *lines = map(json.loads, file.read_text().splitlines())
    tasks = [Task.from_json(line["task"]) for line in lines]
    assert head["tasks_sha256"] == tasks_hash(tasks)
    assert len((tmp_path / "proofs.csv").read_text().splitlines()) == 1 + len(tasks)
    report = json.loads((tmp_path / "report.json").read_text())["families"][0]
    assert report["tasks_sha256"] == head["tasks_sha256"]
    assert 3 <= report["plan_turns"]["least"] <= report["plan_turns"]["most"] <= 30


@pytest.mark.slow
def test_a_run_plays_the_frozen_suite_of_its_seed(built: tuple[dict[str, str], Path], tmp_path: Path) -> None:
    environment, file = built
    done = evalharness(
        environment, "run", "--model", "oracle", "--suite", "open", "--suite-seed", SEED,
        "--tasks", "alfworld:0-1", "-o", tmp_path / "run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "making" not in done.stderr
    tasks = [Task.from_json(json.loads(line)["task"]) for line in file.read_text().splitlines()[1:3]]
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["identity"]["tasks_sha256"] == {"alfworld": tasks_hash(tasks)}
    assert manifest["identity"]["config"]["suite_seed"] == SEED
    assert (
        json.loads((tmp_path / "run" / "summary.json").read_text())["families"]["alfworld"]["success_rate"]
        == 1
    )


@pytest.mark.slow
def test_what_is_frozen_already_is_left_as_it_is(built: tuple[dict[str, str], Path]) -> None:
    environment, file = built
    before = file.stat().st_mtime_ns
    done = evalharness(environment, "data", "suite", "build", "--suite-seed", SEED, "--tasks", "alfworld")
    assert done.returncode == 0, done.stderr
    assert "frozen already" in done.stdout
    assert file.stat().st_mtime_ns == before


@pytest.mark.parametrize("harm", ["one task less", "another goal", "no JSON"])
def test_a_frozen_suite_that_was_changed_is_refused(
    built: tuple[dict[str, str], Path], clean_home: Path, harm: str
) -> None:
    lines = built[1].read_text().splitlines()
    if harm == "one task less":
        lines.pop()
    elif harm == "another goal":
        lines[5] = lines[5].replace(" in ", " on ")
    else:
        lines[7] = "{"
    target = suites.suite_file("alfworld", SEED)
    target.parent.mkdir(parents=True)
    target.write_text("\n".join(lines) + "\n")
    with pytest.raises(UserError, match=f"suite build --suite-seed {SEED} --tasks alfworld --force"):
        family_tasks(ALFWORLD, "open", None, SEED)


def test_a_suite_of_an_earlier_version_is_made_again(
    built: tuple[dict[str, str], Path], clean_home: Path
) -> None:
    """Files from before there were versions are of version 1."""
    head, *lines = built[1].read_text().splitlines()
    unversioned = {key: value for key, value in json.loads(head).items() if key != "version"}
    target = suites.suite_file("alfworld", SEED)
    target.parent.mkdir(parents=True)
    target.write_text("\n".join([json.dumps(unversioned), *lines]) + "\n")
    assert len(family_tasks(with_suites(ALFWORLD, open_version=1), "open", None, SEED)) == 134
    with pytest.raises(UserError, match=r"version 1 .*--tasks alfworld --force"):
        family_tasks(ALFWORLD, "open", None, SEED)


def test_a_suite_that_is_not_there_is_made_and_told(
    clean_home: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("evalharness"), "propagate", True)
    few = with_suites(
        ALFWORLD,
        expected={"open": 2},
        generate=lambda seed: ALFWORLD.suites.load_tasks("open", None, seed)[:2],
    )
    with caplog.at_level("INFO", logger="evalharness"):
        made = family_tasks(few, "open", None, 3)
        assert "evalharness data suite build --suite-seed 3" in caplog.text
        caplog.clear()
        assert family_tasks(few, "open", None, 3) == made
        assert caplog.text == ""
    assert suites.differences(few, 3, suites.build(few, 3)) == []


def test_a_task_without_a_proof_ends_the_build() -> None:
    """A planning problem that one action solves, and a suite that lacks a task."""
    pddl = specs()["pddl"]
    good = pddl.suites.load_tasks("open", None, 0)[0]
    problem = good.payload["problem"].partition("(:goal")[0]
    here = re.search(r"\(at-robby (\w+)\)", problem)
    assert here is not None
    there = next(room for room in re.findall(r"\(room (\w+)\)", problem) if room != here[1])
    trivial = make_task(
        "open", 0, good.kind, "easy", good.payload["domain"], f"{problem}(:goal (and (at-robby {there}))))"
    )
    one = with_suites(pddl, expected={"open": 1}, generate=lambda seed: [good])
    assert len(suites.build(one, 3)) == 1
    with pytest.raises(suites.UnprovenTaskError, match="1 turns"):
        suites.build(with_suites(one, generate=lambda seed: [trivial]), 3)
    with pytest.raises(suites.UnprovenTaskError, match="1 tasks, not 2"):
        suites.build(with_suites(one, expected={"open": 2}), 3)


def test_a_plan_without_full_progress_proves_nothing() -> None:
    """A seventh of the progress is for a text that the game never says."""
    spec = specs()["jericho"]
    task = spec.suites.load_tasks("open", None, 0)[0]
    environment = spec.make(None)
    try:
        assert suites.prove(environment, task).plan_turns <= 30
        with pytest.raises(suites.UnprovenTaskError, match=r"progress 0\.86"):
            suites.prove(environment, replace(task, subgoals=(*task.subgoals, "what no game says")))
    finally:
        environment.close()


def test_a_changed_task_of_seed_0_is_noticed() -> None:
    tasks = ALFWORLD.suites.load_tasks("open", None, 0)
    suites.check_frozen(ALFWORLD, tasks)
    for changed in (tasks[:-1], [replace(tasks[0], goal="put two mugs in bed"), *tasks[1:]]):
        with pytest.raises(UserError, match="reinstall"):
            suites.check_frozen(ALFWORLD, changed)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--suite-seed", "-1"], "at least 0"),
        (["--suite-seed", "1", "--tasks", "alfword"], "'alfworld'"),
        (
            ["--suite-seed", "987654", "--tasks", "alfworld", "--check"],
            "evalharness data suite build --suite-seed 987654",
        ),
    ],
)
def test_a_bad_request_is_refused_with_what_to_do(
    environment: dict[str, str], arguments: list[str], told: str
) -> None:
    done = evalharness(environment, "data", "suite", "build", *arguments)
    assert done.returncode == 2
    assert told in done.stderr


@pytest.mark.parametrize("family", ["alfworld", "jericho"])
def test_seed_0_is_what_the_generators_make(environment: dict[str, str], family: str) -> None:
    """The quick families; the others are in tests/envs, without the command."""
    done = evalharness(environment, "data", "suite", "build", "--suite-seed", 0, "--check", "--tasks", family)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "as frozen" in done.stdout


def test_without_published_data_a_run_says_in_one_line_that_it_plays_the_open_suite(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = evalharness(
        environment, "run", "--model", "oracle", "--tasks", "alfworld:0", "-o", tmp_path / "run"
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "open suite" in line]
    assert len(lines) == 1
    assert "evalharness data import" in lines[0]
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["suite"] == "open"
