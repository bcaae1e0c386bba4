"""`evalharness show`: the list of run folders."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from made_runs import make_run

from evalharness.cli import main
from evalharness.records.store import MANIFEST, RunStore, lock_folder
from evalharness.records.summary import Timing
from evalharness.results.summarize import write_summary
from evalharness.runs.study_file import add_runs

SOLVED, NOTHING = (True, 1.0), (False, 0.5)
SIZES = {"babyai": 112, "sciworld": 90, "pddl": 60, "jericho": 20}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run, a part of one, and a study of two runs."""
    folder = tmp_path_factory.mktemp("made") / "results"
    make_run(folder / "whole", {f: [SOLVED] * n for f, n in SIZES.items()}, name="big")
    write_summary(folder / "whole", Timing())
    part = make_run(folder / "part", {"babyai": [SOLVED, NOTHING]}, name="small", label={"size": "8000"})
    lines = (part / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (part / "episodes.jsonl").write_bytes(lines[0])
    for seed, outcome in ((0, SOLVED), (1, NOTHING)):
        make_run(folder / "study" / f"seed-{seed}", {"pddl": [outcome]}, name="small", seed=seed)
    (folder / "study" / "study.json").write_text(
        json.dumps({"schema": 1, "kind": "seeds", "runs": {"seed-0": "seed-0", "seed-1": "seed-1"}})
    )
    return folder


@pytest.fixture
def results(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same in the current folder, to change."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(made, tmp_path / "results"))


def runs(*arguments: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert main(["show", *arguments, "--json", "-"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["runs"]
    return found


def test_runs_are_listed_with_what_is_done_and_their_scores(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {Path(run["folder"]).name: run for run in runs(capsys=capsys)}
    assert sorted(found) == ["part", "study", "whole"]
    whole, part, study = found["whole"], found["part"], found["study"]
    assert (whole["state"], whole["done"], whole["episodes"], whole["success"]) == ("complete", 282, 282, 1.0)
    assert (part["state"], part["done"], part["episodes"]) == ("part", 1, 2)
    assert part["scores"]["babyai"] == {"success": 1.0, "progress": 1.0}
    assert (study["study"], study["done"], len(study["runs"])) == ("seeds", 2, 2)


@pytest.mark.parametrize(
    ("file", "old", "new", "rate"),
    [
        ("summary.json", '"success_rate": 1.0', '"success_rate": 0.1', 1.0),
        ("episodes.jsonl", '"success":true', '"success":false', 0.0),
    ],
)
def test_scores_are_those_of_the_episodes_whatever_was_edited(
    results: Path, file: str, old: str, new: str, rate: float, capsys: pytest.CaptureFixture[str]
) -> None:
    path = results / "whole" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    found = {Path(run["folder"]).name: run for run in runs(capsys=capsys)}
    assert found["whole"]["success"] == rate


def test_a_study_is_one_line_with_its_range(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["show", "results"]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if "study" in line]
    assert "seeds of 2 runs" in shown[0]
    assert "0.0 to 100.0" in shown[0]
    assert "50.0 to 100.0" in shown[0]
    assert len([line for line in shown if "results/study" in line]) == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nowhere"], "nowhere"),
    ],
)
def test_what_is_no_key_or_folder_is_refused(
    results: Path, arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_where_nothing_was_played_the_list_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["show"]) == 0
    assert "no run yet in results" in capsys.readouterr().err


def test_another_programs_manifest_is_no_damaged_run(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (results / "extension").mkdir()
    (results / "extension" / "manifest.json").write_text('{"schema": 3, "name": "a browser extension"}')
    assert sorted(Path(run["folder"]).name for run in runs(capsys=capsys)) == ["part", "study", "whole"]


def test_a_damaged_run_is_listed_as_such(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (results / "whole" / "manifest.json").write_text("{")
    found = {Path(run["folder"]).name: run for run in runs(capsys=capsys)}
    assert found["whole"]["state"] == "damaged"
    assert "manifest.json is damaged" in found["whole"]["why"]
    assert found["part"]["state"] == "part"


def test_a_run_whose_manifest_names_no_family_is_listed(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = results / "part" / "manifest.json"
    none = {"counts": {}, "expected": {}, "titles": {}, "labels": {}}
    path.write_text(json.dumps(json.loads(path.read_text()) | none))
    assert "part" in [Path(run["folder"]).name for run in runs(capsys=capsys)]


def test_a_run_that_goes_on_is_shown(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RunStore(results / "part"):
        states = {Path(run["folder"]).name: run["state"] for run in runs(capsys=capsys)}
    assert states["part"] == "running"


@pytest.mark.parametrize("held", ["study", "study/plans", "study/seed-0/labels/me"])
def test_a_study_that_is_played_is_listed_as_running(
    results: Path, held: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with lock_folder(results / held, MANIFEST):
        states = {Path(run["folder"]).name: run["state"] for run in runs(capsys=capsys)}
    assert states["study"] == ("complete" if held.endswith("me") else "running")


def test_a_study_with_runs_left_to_play_is_no_whole_one(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_runs("seeds", results / "study", {}, ["seed-2"])
    states = {Path(run["folder"]).name: run["state"] for run in runs(capsys=capsys)}
    assert states["study"] == "part"


def test_scores_of_a_part_of_the_tasks_are_marked(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(results / "part")
    make_run(results / "first", {"babyai": [SOLVED]}, name="first")
    assert main(["show", "results"]) == 0
    shown = capsys.readouterr().out
    lines = {name: next(line for line in shown.splitlines() if name in line) for name in ("whole", "first")}
    assert "100.0\u2020" in lines["first"], "everything is played, and everything is one task of 112"
    assert "\u2020" not in lines["whole"]
    assert "\n\u2020 " in shown


def test_a_pooled_score_is_marked_as_no_held_out_score(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two whole families beside a run that has the held-out score."""
    make_run(results / "two", {"jericho": [SOLVED] * 20, "pddl": [SOLVED] * 60}, name="two")
    assert main(["show", "results"]) == 0
    shown = capsys.readouterr().out
    lines = {name: next(line for line in shown.splitlines() if name in line) for name in ("whole", "two")}
    assert "100.0\u00b0" in lines["two"]
    assert "\u00b0" not in lines["whole"]
    assert "\u00b0 several families pooled; not the held-out score" in shown


def test_at_80_columns_names_are_broken_between_words_and_numbers_are_whole(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = "meta-llama/Meta-Llama-3.1-8B-Instruct-AgentRefine-lr5e6-epoch3"
    make_run(results / "a-run-of-the-third-epoch", {"babyai": [SOLVED, NOTHING]}, name=name)
    assert main(["show", "results"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    words = {word for line in shown.splitlines() for word in line.split()}
    assert not [part for part in re.findall(r"[^-/]+", name) if not any(part in word for word in words)], (
        shown
    )
    assert {"50.0\u2020", "75.0\u2020"} <= words
    assert "0.0 to 100.0\u2020" in shown


def test_a_training_is_no_run(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (results / "tuned").mkdir()
    (results / "tuned" / "manifest.json").write_text('{"kind": "evalharness tuning", "schema": 1}')
    assert main(["show", "results"]) == 0
    assert "tuned" not in capsys.readouterr().out
