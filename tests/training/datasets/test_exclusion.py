"""One check for every way into training data: what is evaluated on stays out, also under other numbers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from small_suites import first_tasks, freeze, home_at

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.envs import specs
from evalharness.envs.base import Task
from evalharness.suites import open as suites
from evalharness.suites.excluded import EVALUATED
from evalharness.training.datasets.conversation import (
    Conversation,
    read_data,
    read_manifest,
    write_data,
)
from evalharness.training.grounded.grounded import DataRequest, check, make

pytestmark = pytest.mark.slow

SEED, NAMED, LATER = 100, 101, 102


def disguised(task: Task, index: int) -> Task:
    """The same task, which by its content hash is another one."""
    other = replace(task, index=index, id=f"alfworld/open/{index:03}")
    assert other.content_hash != task.content_hash
    return other


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Small open suites of ALFWorld. That of `SEED`: two new tasks, one that is in `NAMED`, one of suite seed 0."""
    with home_at(tmp_path_factory.mktemp("exclusion")) as folder:
        frozen = specs()["alfworld"].suites.load_tasks("open", None, 0)[5]
        new = list(first_tasks("alfworld", SEED, 3))
        other = list(first_tasks("alfworld", LATER, 5))
        for seed, tasks in {
            SEED: [*new, disguised(frozen, 3)],
            NAMED: [disguised(new[2], 0), disguised(other[4], 1)],
            LATER: other[:4],
        }.items():
            freeze("alfworld", seed, tasks)
        words = ["run", "--model", "oracle", "--suite", "open", "--suite-seed", str(SEED)]
        assert main([*words, "--tasks", "alfworld:0-3", "-o", str(folder / "run")]) == 0
        yield folder


def refine(command: str, source: Path, target: Path, *options: str) -> set[str]:
    """The ids of the tasks that get through."""
    target.unlink(missing_ok=True)
    assert main(["refine", command, str(source), "-o", str(target), *options]) == 0
    return {conversation.metadata["task_id"][-3:] for conversation in read_data(target, [])}


@pytest.fixture(scope="module")
def all_four(home: Path) -> Path:
    """Data that holds an evaluated task, and one of `NAMED`."""
    path = home / "all.jsonl"
    assert refine("from-runs", home / "run", path, "--allow-eval-tasks") == {"000", "001", "002", "003"}
    return path


@pytest.mark.parametrize("command", ["from-runs", "mix", "read"])
def test_an_evaluated_task_under_another_number_stays_out_and_so_do_named_suites(
    command: str, home: Path, all_four: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = home / "run" if command == "from-runs" else all_four
    out = tmp_path / "out.jsonl"
    capsys.readouterr()
    assert refine(command, source, out) == {"000", "001", "002"}
    said = capsys.readouterr()
    assert "1 left out: " in said.out + said.err
    named = ("--exclude-suite-seeds", str(NAMED))
    assert refine(command, source, out, *named) == {"000", "001"}
    manifest = read_manifest(out)
    assert manifest is not None
    assert manifest["made"]["excluded"]["suite_seeds"] == [NAMED]
    assert manifest["made"]["excluded"]["compared_with"]["alfworld"][f"suite seed {NAMED}"] == {"tasks": 2}
    assert refine(command, source, out, *named, "--allow-eval-tasks") == {"000", "001", "003"}
    assert refine(command, source, out, "--allow-eval-tasks") == {"000", "001", "002", "003"}


def test_the_same_holds_for_grounded_data(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "grounded.jsonl"
    order = DataRequest(
        families=("alfworld",), suite_seed=SEED, samples=4, per_task=1, search=False, errors=None,
        exclude_suite_seeds=(NAMED,),
    )  # fmt: skip
    manifest = asyncio.run(make(order, dict(specs()), path, workers=1))
    row = manifest["made"]["families"]["alfworld"]
    assert row["overlap_refused"] == {EVALUATED: 1, f"suite seed {NAMED}": 1}
    assert row["suite_seeds"] == [SEED, LATER], "an excluded suite gives no tasks"
    with pytest.raises(UserError, match="is in --exclude-suite-seeds"):
        check(replace(order, suite_seed=NAMED))
    # What was made before a suite was named is still known by its forms.
    plain = asyncio.run(
        make(
            replace(order, samples=3, exclude_suite_seeds=()),
            dict(specs()),
            tmp_path / "plain.jsonl",
            workers=1,
        )
    )
    assert plain["counts"]["samples"] == 3
    found = refine("mix", tmp_path / "plain.jsonl", path, "--exclude-suite-seeds", str(NAMED))
    assert found == {"000", "001"}


def test_a_run_whose_suite_is_another_version_now_cannot_be_compared(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = suites.suite_file("alfworld", SEED)
    text = file.read_text()
    head, *lines = text.splitlines()
    file.write_text("\n".join([json.dumps({**json.loads(head), "version": 99}), *lines]))
    try:
        assert main(["refine", "from-runs", str(home / "run"), "-o", str(tmp_path / "out.jsonl")]) == 2
    finally:
        file.write_text(text)
    assert "its task is missing" in capsys.readouterr().err


def test_data_without_forms_is_compared_by_hash_and_that_is_said(
    home: Path, all_four: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def bare(conversation: Conversation) -> Conversation:
        return replace(
            conversation, metadata={k: v for k, v in conversation.metadata.items() if k != "task_forms"}
        )

    frozen = specs()["alfworld"].suites.load_tasks("open", None, 0)[5].content_hash
    old = [bare(conversation) for conversation in read_data(all_four, [])]
    write_data(tmp_path / "old.jsonl", [*old[:3], replace(old[3], task_hash=frozen)], {})
    assert refine("mix", tmp_path / "old.jsonl", tmp_path / "out.jsonl") == {"000", "001", "002"}
    assert "4 compared" in capsys.readouterr().err
