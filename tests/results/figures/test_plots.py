"""`evalharness report --figure`: the numbers, the files and hostile names."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from made_runs import make_run

from evalharness.cli import main
from evalharness.records.store import read_manifest
from evalharness.results.figures import looks, plots
from evalharness.results.scored_run import load_scored_run

pytest.importorskip("matplotlib")

SOLVED, HALF, NOTHING = (True, 1.0), (False, 0.5), (False, 0.0)


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.mark.slow
def test_each_plot_is_png_svg_and_csv_with_the_numbers_it_shows(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED] * 2 + [HALF] * 2}, name="<b>$x_1$")
    b = make_run(tmp_path / "b", {"babyai": [SOLVED] * 4, "pddl": [NOTHING] * 2}, name="other")
    out = tmp_path / "out"
    assert main(["report", str(a), str(b), "--figure", str(out)]) == 0
    assert {path.name for path in out.iterdir()} == {
        f"{name}.{ending}" for name in ("progress_by_turn", "difficulty") for ending in ("png", "svg", "csv")
    }
    for path in out.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
    for path in out.glob("*.svg"):
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
        assert root.tag.endswith("svg")
        assert "<b>" in "".join(root.itertext())
    curve = [
        r for r in rows(out / "progress_by_turn.csv") if (r["run"], r["family"]) == ("<b>$x_1$", "babyai")
    ]
    # Made episodes have three turns: 0 after the first, then their progress, which is held to turn 30.
    assert [float(r["progress"]) for r in curve] == [0.0] + [0.75] * 29
    hard = [r for r in rows(out / "difficulty.csv") if r["run"] == "other" and r["difficulty"] == "hard"]
    assert {(r["family"], r["measure"], float(r["rate"])) for r in hard} == {
        ("babyai", "success", 1.0), ("babyai", "progress", 1.0), ("pddl", "success", 0.0), ("pddl", "progress", 0.0)
    }  # fmt: skip


def test_curves_over_k_where_tasks_were_sampled(tmp_path: Path) -> None:
    run = make_run(
        tmp_path / "run", {"pddl": [[SOLVED, NOTHING, HALF], [NOTHING] * 3]}, samples=3, temperature=1.0
    )
    assert main(["report", str(run), "--figure", str(tmp_path / "out")]) == 0
    values = {(r["curve"], int(r["k"])): float(r["rate"]) for r in rows(tmp_path / "out" / "best_of_k.csv")}
    assert values["best_success", 1] == pytest.approx(1 / 6)
    assert values["best_success", 3] == pytest.approx(1 / 2)
    assert values["best_progress", 2] == pytest.approx((1 + 1 + 0.5) / 3 / 2)
    assert values["every_success", 2] == 0.0


@pytest.mark.slow
def test_the_same_runs_give_the_same_files(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"babyai": [SOLVED, HALF, NOTHING]})
    for name in ("one", "two"):
        assert main(["report", str(run), "--figure", str(tmp_path / name)]) == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_without_matplotlib_the_error_says_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    run = make_run(tmp_path / "run", {"babyai": [SOLVED]})
    assert main(["report", str(run), "--figure", str(tmp_path / "out")]) == 2
    assert f"{sys.executable} -m pip install 'matplotlib>=3.8'" in capsys.readouterr().err


@pytest.mark.parametrize(("runs", "bands"), [(3, 3), (4, 0)])
def test_only_as_many_bands_are_drawn_as_can_be_told_apart(runs: int, bands: int) -> None:
    rows = [
        {"run": f"r{run}", "family": "pddl", "turn": turn, "progress": 0.5, "ci95_low": 0.2, "ci95_high": 0.7}
        for run in range(runs)
        for turn in (1, 2)
    ]
    with looks.style("paper"):
        (axes,) = plots.draw_progress_by_turn(rows, {}).axes
    assert (len(axes.collections), len(axes.lines)) == (bands, runs)
    assert axes.get_ylabel() == "progress rate (%)"
    assert axes.get_ylim() == (0, 100)


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


def test_a_finished_run_takes_a_label(tmp_path: Path, clean_home: Path) -> None:
    run = tmp_path / "run"
    arguments = ["run", "--model", "random", "--suite", "open", "--tasks", "babyai:0", "--max-turns", "2"]
    for labels in ([], ["--label", "data_size=1", "--label", "by=me"], ["--label", "data_size=2"], []):
        assert main([*arguments, "-o", str(run), *labels]) == 0
    assert load_scored_run(run).labels == {"data_size": "2", "by": "me"}
    assert len(read_manifest(run).sessions) == 1
