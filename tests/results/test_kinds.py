"""Success by kind of task: in the summary, `show`, `report`, `compare` and their CSV files, from one function."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from made_runs import make_run

from evalharness.cli import main
from evalharness.results.report.bundle import ReadRun
from evalharness.results.summarize import summarize

SOLVED, HALF = (True, 1.0), (False, 0.5)
KINDS = {"alfworld": ["put", "heat", "put"], "pddl": ["barman"]}


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    first = make_run(tmp_path / "a", {"alfworld": [SOLVED, HALF, HALF], "pddl": [SOLVED]}, kinds=KINDS)
    second = make_run(tmp_path / "b", {"alfworld": [SOLVED, SOLVED, SOLVED], "pddl": [HALF]}, kinds=KINDS)
    return first, second


def test_success_of_each_kind_stands_in_summary_page_table_and_csv(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = runs
    assert main(["show", str(run), "--verbose", "--csv", str(tmp_path / "kinds.csv")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "ALFWorld heat 0.0 (1), put 50.0 (2)" in shown
    families = summarize(run).to_json()["families"]
    kinds = families["alfworld"]["by_kind"]
    assert {
        kind: (score["n"], score["success_rate"], score["progress_rate"]) for kind, score in kinds.items()
    } == {
        "heat": (1, 0.0, 0.5),
        "put": (2, 0.5, 0.75),
    }
    assert "by_kind" not in families["pddl"], "all of one kind"
    assert ReadRun(run).entry("a")["summary"]["families"] == families
    with (tmp_path / "kinds.csv").open() as file:
        rows = [
            (row["family"], row["kind"], row["tasks"], row["success_rate"]) for row in csv.DictReader(file)
        ]
    assert rows == [("alfworld", "heat", "1", "0.0"), ("alfworld", "put", "2", "0.5")]


def test_compare_sets_the_kinds_of_two_runs_beside_each_other_over_their_common_tasks(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, record = tmp_path / "kinds.csv", tmp_path / "kinds.json"
    assert main(["compare", *map(str, runs), "--verbose", "--csv", str(table), "--json", str(record)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "task, A -> B (tasks) ALFWorld heat 0.0 -> 100.0 (1), put 50.0 -> 100.0 (2)" in shown
    with table.open() as file:
        rows = [row for row in csv.DictReader(file) if row["kind"]]
    assert [
        (row["kind"], row["measure"], row["baseline"], row["run"], row["difference"]) for row in rows
    ] == [
        ("heat", "success", "0.0", "1.0", "1.0"),
        ("heat", "progress", "0.5", "1.0", "0.5"),
        ("put", "success", "0.5", "1.0", "0.5"),
        ("put", "progress", "0.75", "1.0", "0.25"),
    ]
    assert len(json.loads(record.read_text())["comparisons"][0]["kinds"]) == 4
