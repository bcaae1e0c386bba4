"""A finished study is looked at from its stored runs: no model and no server is there any more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalharness.cli import main

PLAYED: dict[str, list[str]] = {
    "bon": ["bon", "--tasks", "babyai", "-n", "2"],
    "sweep": ["sweep", "--tasks", "babyai", "--perturb", "verbs", "no-rules"],
    "seeds": ["run", "--tasks", "babyai", "--seed", "0,1"],
}
COMMON = ["--model", "random", "--suite", "open", "--limit", "3", "--max-turns", "3"]


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for name, command in PLAYED.items():
        found[name] = tmp_path_factory.mktemp("studies") / name
        assert main([*command, *COMMON, "-o", str(found[name])]) == 0
    return found


def shown(folder: Path, target: Path) -> Any:
    assert main(["show", str(folder), "--json", str(target)]) == 0
    return json.loads(target.read_text())


@pytest.mark.parametrize("name", PLAYED)
def test_show_says_what_the_command_said(
    name: str, studies: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shown(studies[name], tmp_path / "found.json")
    again = [*PLAYED[name], *COMMON, "-o", str(studies[name]), "--json", str(tmp_path / "said.json")]
    capsys.readouterr()
    assert main(again) == 0
    table = capsys.readouterr().out
    assert json.loads((tmp_path / "said.json").read_text()) == found
    assert main(["show", str(studies[name])]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] in table
    assert "its runs:" in out


@pytest.mark.parametrize("name", PLAYED)
def test_every_table_and_page_takes_a_study(name: str, studies: dict[str, Path], tmp_path: Path) -> None:
    study = str(studies[name])
    assert main(["show", "--behaviour", study]) == 0
    assert main(["report", study, "-o", str(tmp_path / "page.html")]) == 0
    assert main(["verify", study]) == 0


def test_compare_takes_runs_of_a_study_and_seeds_as_repeats(
    studies: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(studies["sweep"])]) == 0
    out = capsys.readouterr().out
    assert "C against A" in out
    assert main(["compare", str(studies["seeds"]), str(studies["sweep"] / "unperturbed")]) == 0
    assert "2 repeats" in capsys.readouterr().out
    assert main(["compare", str(studies["seeds"])]) == 2
    assert "two runs" in capsys.readouterr().err


def test_a_task_of_a_study_is_a_task_of_one_of_its_runs(
    studies: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(studies["bon"]), "babyai/open/000"]) == 2
    assert "evalharness show" in capsys.readouterr().err


@pytest.mark.parametrize("name", PLAYED)
def test_a_dry_run_plays_nothing_and_names_every_run(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "study"
    assert main([*PLAYED[name], *COMMON, "--dry-run", "-o", str(folder), "--json", "-"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert len(plan["runs"]) == {"bon": 2, "sweep": 3, "seeds": 2}[name]
    assert not folder.exists()
