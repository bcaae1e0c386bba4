"""Scaling curves: labels on runs, files that say as much, and what cannot be drawn."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from made_runs import make_run

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.results.scored_run import load_scored_run
from evalharness.results.x_values import read_x

SOLVED, FAILED = (True, 1.0), (False, 0.5)


def runs(folder: Path, *, series: str | None = None) -> list[Path]:
    """4k, 8k and 64k samples of data, with 1, 2 and 4 of 4 tasks solved."""
    made = []
    for size, solved in ((4000, 1), (64000, 4), (8000, 2)):
        label = {"data_size": str(size)} | ({"series": series} if series else {})
        outcomes = {"babyai": [SOLVED] * solved + [FAILED] * (4 - solved)}
        made.append(make_run(folder / f"{series or 'run'}-{size}", outcomes, suite="open", label=label))
    return made


def rows(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "scaling.csv").open()))


@pytest.mark.slow
def test_runs_are_drawn_over_their_label(tmp_path: Path) -> None:
    made = runs(tmp_path)
    assert main(["plot", *map(str, made), "--x", "data_size", "-o", str(tmp_path / "plots")]) == 0
    success = [(row["x"], row["rate"]) for row in rows(tmp_path / "plots") if row["measure"] == "success"]
    assert success == [("4000.0", "0.25"), ("8000.0", "0.5"), ("64000.0", "1.0")]
    assert {row["axis"] for row in rows(tmp_path / "plots")} == {"data_size"}
    svg = (tmp_path / "plots" / "scaling.svg").read_text()
    for text in ("data_size", "4000", "64000"):
        assert text in svg


@pytest.mark.slow
def test_a_file_says_it_for_runs_without_a_label(tmp_path: Path) -> None:
    made = runs(tmp_path)
    values = tmp_path / "epochs.json"
    values.write_text(json.dumps({run.name: i for i, run in enumerate(made)}))
    arguments = ["plot", *map(str, made), "--x", f"epochs={values}", "-o", str(tmp_path / "plots")]
    assert main(arguments) == 0
    places = [row["x"] for row in rows(tmp_path / "plots") if row["measure"] == "success"]
    assert places == ["0.0", "1.0", "2.0"]


@pytest.mark.slow
def test_runs_of_several_series_are_a_line_each(tmp_path: Path) -> None:
    made = [*runs(tmp_path, series="plain"), *runs(tmp_path, series="refined")]
    assert main(["plot", *map(str, made), "--x", "data_size", "-o", str(tmp_path / "plots")]) == 0
    assert {row["series"] for row in rows(tmp_path / "plots")} == {"plain", "refined"}
    assert "refined: success" in (tmp_path / "plots" / "scaling.svg").read_text()


@pytest.mark.parametrize("label", ["many", "nan"])
def test_a_label_that_is_no_number_or_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], label: str
) -> None:
    run = make_run(tmp_path / "run", {"babyai": [SOLVED]}, suite="open", label={"data_size": label})
    assert main(["plot", str(run), "--x", "data_size", "-o", str(tmp_path / "plots")]) == 2
    assert f"{label!r} is no number" in capsys.readouterr().err
    assert main(["plot", str(run), "--x", "steps", "-o", str(tmp_path / "plots")]) == 2
    assert "--label steps=N" in capsys.readouterr().err


def test_files_with_and_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for content in ("name,size\na,1\nb,2.5\n", "a,1\nb,2.5\n"):
        path.write_text(content)
        assert read_x(f"size={path}") == ("size", {"a": 1.0, "b": 2.5})
    for content, complaint in (
        ("a,1,2\n", "two columns"),
        ("a,1\nb,x\n", "'x' is no number"),
        ("{", "not valid JSON"),
    ):
        path.write_text(content)
        with pytest.raises(UserError, match=complaint):
            read_x(f"size={path}")
    with pytest.raises(UserError, match="not readable"):
        read_x(f"size={tmp_path / 'nowhere'}")


@pytest.mark.slow
def test_a_label_changes_nothing_of_what_a_run_is(tmp_path: Path, clean_home: Path) -> None:
    """The run is continued with another label, which then counts."""
    arguments = [
        *["run", "--model", "oracle", "--suite", "open", "--tasks", "babyai:0", "-o"],
        str(tmp_path / "run"),
    ]
    assert main([*arguments, "--label", "data_size=1", "--label", "by=me"]) == 0
    assert load_scored_run(tmp_path / "run").labels == {"data_size": "1", "by": "me"}
    assert main([*arguments, "--samples", "2", "--label", "data_size=2"]) == 0
    assert load_scored_run(tmp_path / "run").labels == {"data_size": "2", "by": "me"}
