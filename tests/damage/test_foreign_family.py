"""An episode that says it is of a family that its run has not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_runs import make_run

from evalharness.cli import main


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three episodes of ALFWorld, of which the first says that it is of a family the manifest does not name."""
    folder = make_run(tmp_path / "run", {"alfworld": [(True, 1.0), (False, 0.5), (False, 0.0)]}, name="a/b")
    file = folder / "episodes.jsonl"
    first, *rest = file.read_text().splitlines(keepends=True)
    file.write_text(json.dumps(json.loads(first) | {"family": "pddl"}) + "\n" + "".join(rest))
    return folder


def test_a_manifest_that_names_no_family_is_damaged(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = run / "manifest.json"
    nothing = {key: {} for key in ("counts", "expected", "titles", "labels", "held_out")}
    file.write_text(json.dumps(json.loads(file.read_text()) | nothing))
    for command in ("compare", "leaderboard", "report"):
        assert main([command, str(run), *([str(run)] if command == "compare" else [])]) == 2
        assert "counts" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["atif", "openai-chat", "csv"])
def test_every_export_takes_it(run: Path, tmp_path: Path, form: str) -> None:
    assert main(["export", str(run), "--format", form, "-o", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize("command", ["show --behaviour", "show", "leaderboard"])
def test_every_table_is_made(run: Path, command: str) -> None:
    assert main([*command.split(), str(run)]) == 0


def test_the_page_is_made(run: Path, tmp_path: Path) -> None:
    assert main(["report", str(run), "-o", str(tmp_path / "page.html")]) == 0
