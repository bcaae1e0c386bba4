"""Folders of judgements and labels that were damaged: what they still say, and what they do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalharness.cli import main
from evalharness.judge.draw import load_turns
from evalharness.records.answers import make_manifest

from .runs import make_judged_run


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """The folder of a judge that was given 20 of the run's turns, and answered all."""
    run = load_turns(make_judged_run(tmp_path / "run", tasks=2, turns=10))
    folder = run.folder / "judgements" / "toy"
    folder.mkdir(parents=True)
    identity = {"kind": "judgements", "run_digest": run.digest}
    (folder / "manifest.json").write_text(
        json.dumps(make_manifest(identity, "toy", drawn={"turns": 20, "seed": 0}))
    )
    lines = [
        {"task_id": task_id, "sample": sample, "turn": turn, "family": task_id.split("/")[0]}
        | {"wrong": turn % 2 == 0, "kind": None, "note": ""}
        for task_id, sample, turn in (drawn.key for drawn in run.draw_turns(20, 0))
    ]
    (folder / "judgements.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def agreement(judged: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    status = main(["judge", "agreement", "simulator", str(judged)])
    return status, capsys.readouterr().err


def test_judgements_that_were_cut_are_counted(judged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert agreement(judged, capsys) == (0, "")
    path = judged / "judgements.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:13]) + lines[13][:20])
    status, said = agreement(judged, capsys)
    assert status == 0
    assert "toy has no verdict on 7 " in said


def test_a_manifest_without_the_digest_of_its_run_is_one_line(
    judged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = judged / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["identity"]["run_digest"]
    path.write_text(json.dumps(manifest))
    status, said = agreement(judged, capsys)
    assert status == 2
    assert said.startswith(f"evalharness: {path} ")
    assert "'run_digest'" in said
    assert said.count("\n") == 1


def test_a_judgement_that_is_neither_right_nor_wrong_is_damage(
    judged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = judged / "judgements.jsonl"
    first, *others = path.read_text().splitlines(keepends=True)
    path.write_text("".join([json.dumps(json.loads(first) | {"wrong": "yes"}) + "\n", *others]))
    status, said = agreement(judged, capsys)
    assert status == 2
    assert "line 1 " in said


def test_a_manifest_without_the_judges_name_is_that_of_the_folder(
    judged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = judged / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["model_name"]
    path.write_text(json.dumps(manifest))
    assert agreement(judged, capsys) == (0, "")
