"""A run over questions: its tables and the leaderboard say EM and F1."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from made_runs import make_run
from rich.console import Console

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.envs import specs
from evalharness.records.summary import FamilyRow, FamilyScoreNames, Summary
from evalharness.results.terminal.table import kinds_table
from evalharness.runs import api

SPECS = specs()
SPEC = SPECS["hotpotqa"]


RUN = ["run", "--model", "oracle", "--suite", "hotpotqa", "--limit", "4"]


@pytest.fixture
def run_folder(data: Path, tmp_path: Path, clean_home: Path) -> Path:
    folder = tmp_path / "run"
    command = [*RUN, "--data", str(data), "-o", str(folder)]
    assert main(command) == 0
    return folder


def test_tables_say_em_and_f1(
    run_folder: Path, data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    capsys.readouterr()
    assert main([*RUN, "--data", str(data), "-o", str(run_folder)]) == 0
    shown = capsys.readouterr().out
    assert "EM % [95 % CI]" in shown
    assert "F1 % [95 % CI]" in shown
    assert "success %" not in shown
    assert "at most 7 turns" in shown
    assert "HotpotQA: 300 tasks" in shown
    assert "opened 100.0" in " ".join(shown.split())
    assert "4/300" in shown
    summary = json.loads((run_folder / "summary.json").read_text())
    entry = summary["families"]["hotpotqa"]
    assert entry["figures"]["supporting_facts"]["mean"] == 1
    assert (entry["mean_turns"], summary["max_turns"]) == (3, 7)
    assert summary["scores"]["hotpotqa"]["success"] == "EM"


def test_kinds_and_repeats_say_em_and_f1(
    tmp_path: Path, clean_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["run", "--model", "random", "--suite", "open", "--tasks", "hotpotqa", "--limit", "12"]
    assert main([*run, "--samples", "2", "--temperature", "1", "-o", str(tmp_path / "run")]) == 0
    assert main(["show", str(tmp_path / "run"), "--verbose"]) == 0
    shown = capsys.readouterr().out
    assert "by kind" in shown
    assert "HotpotQA, EM" in shown
    assert "success %" not in shown
    assert "HotpotQA, success" not in shown


def test_kinds_of_families_with_other_names_say_which_are_which() -> None:
    rates = {f"{m}_rate{end}": value for m in ("success", "progress")
             for end, value in (("", 0.5), ("_ci95", [0.4, 0.6]), ("_ci95_by_kind", [0.3, 0.7]))}  # fmt: skip
    entry = FamilyRow.model_construct(**rates, kinds=3)
    summary = Summary.model_construct(
        families={"babyai": entry, "hotpotqa": entry},
        scores={"hotpotqa": FamilyScoreNames(success="EM", progress="F1")},
        held_out=None,
    )
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(kinds_table(summary, {"babyai": "BabyAI", "hotpotqa": "HotpotQA"}))
    header, *rows = console.export_text().splitlines()
    assert "success % [95 % CI]" in header
    assert [row.split("  ")[0].strip() for row in rows] == ["BabyAI", "HotpotQA (EM, F1)"]


def test_the_leaderboard_has_a_table_of_its_own_for_it(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["leaderboard", "--table", "hotpotqa", str(run_folder), "--format", "csv"]) == 0
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    assert rows["AgentRefine"]["hotpotqa_success"] == "0.37"
    assert rows["AgentRefine"]["hotpotqa_progress"] == "0.446"
    assert rows["oracle"]["hotpotqa_success"] == "1.0"
    assert "HotpotQA 4/300" in rows["oracle"]["notes"]
    assert "seed 233" in rows["oracle"]["notes"]
    assert not any(column.startswith("held_out") for column in rows["oracle"])
    for form in ("text", "md", "latex"):
        assert main(["leaderboard", "--table", "hotpotqa", str(run_folder), "--format", form]) == 0
        shown = capsys.readouterr().out
        assert all(name in shown for name in ("EM", "F1", "AgentRefine", "live Wikipedia")), form
        assert "eld-out" not in shown


def test_the_main_leaderboard_leaves_it_out(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["leaderboard", str(run_folder)]) == 2
    assert "--table hotpotqa" in capsys.readouterr().err
    assert main(["leaderboard", "--table", "babyai"]) == 2
    other = make_run(tmp_path / "open", {"hotpotqa": [(True, 1.0)]}, suite="open")
    assert main(["leaderboard", "--table", "hotpotqa", str(other)]) == 2
    assert "suite open" in capsys.readouterr().err


@pytest.mark.slow
def test_runs_with_other_turn_limits_are_not_compared(
    run_folder: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    longer = tmp_path / "longer"
    command = [*RUN, "--data", str(data), "-o", str(longer)]
    assert main([*command, "--max-turns", "30"]) == 0
    for again in (["compare"], ["show", "--behaviour"]):
        capsys.readouterr()
        assert main([*again, str(run_folder), str(longer)]) == 2, again
        assert "turn limit" in capsys.readouterr().err
    assert main(command) == 2  # the folder holds a run of another limit
    with pytest.raises(UserError, match="table"):
        api.leaderboard([run_folder])
    assert [row["name"] for row in api.leaderboard([run_folder], table="hotpotqa").rows()][-1] == "oracle"
    assert main(["report", str(run_folder), "--figure", str(tmp_path / "plots")]) == 0
    with pytest.raises(UserError, match="turn limit"):
        api.leaderboard([run_folder, longer], published=False, table="hotpotqa")
