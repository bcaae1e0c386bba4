"""`evalharness report --figure`: the numbers, the files, hostile names, and curves over labels or what a file says."""

from __future__ import annotations

import csv
import itertools
import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import made_study, make_run

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.envs import specs
from evalharness.paper.exhibit import Entry, Given
from evalharness.paper.exhibits import EXHIBITS
from evalharness.paper.perturbed import groups_of
from evalharness.records.store import read_manifest
from evalharness.results.report import looks, plots
from evalharness.results.scored_run import load_scored_run
from evalharness.results.x_values import read_x

pytest.importorskip("matplotlib")

SOLVED, HALF, NOTHING = (True, 1.0), (False, 0.5), (False, 0.0)


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.mark.slow
def test_each_plot_is_png_svg_and_csv_with_the_numbers_it_shows(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED] * 2 + [HALF] * 2}, name="<b>$x_1$")
    b = make_run(tmp_path / "b", {"babyai": [SOLVED] * 4, "pddl": [NOTHING] * 2}, name="other")
    out = tmp_path / "out"
    assert main(["report", str(a), str(b), "--figure", str(out), "--against", "GPT-4o"]) == 0
    assert {path.name for path in out.iterdir()} == {
        f"{name}.{ending}"
        for name in ("progress_by_turn", "difficulty", "families")
        for ending in ("png", "svg", "csv")
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
    published = {
        r["family"]: float(r["rate"])
        for r in rows(out / "families.csv")
        if r["run"] == "GPT-4o" and r["measure"] == "success"
    }
    parts = {(r["source"], r["incomplete"]) for r in rows(out / "families.csv")}
    assert parts == {("published", "False"), ("run", "True")}
    assert "\u2020" in (out / "families.svg").read_text(encoding="utf-8")
    assert published["alfworld"] == 0.664
    assert published["held_out"] == pytest.approx(0.4575, abs=1e-4)


@pytest.mark.slow
def test_marks_are_explained_where_they_are_and_names_fit(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also a glyph that no font has draws no warning into the terminal."""
    whole = make_run(tmp_path / "whole", {"jericho": [SOLVED] * 7 + [NOTHING] * 13}, name="模型 " + "x" * 90)
    out = tmp_path / "out"
    assert main(["report", str(whole), "--figure", str(out)]) == 0
    text = "".join(ElementTree.fromstring((out / "families.svg").read_text(encoding="utf-8")).itertext())
    assert "hatched" not in text
    assert "†" not in text
    assert "35.0" in text
    assert "x" * 20 in text
    assert "x" * 60 not in text
    part = make_run(tmp_path / "part", {"jericho": [SOLVED]}, name="part")
    assert main(["report", str(part), "--figure", str(out), "--against", "LLaMA-3-8B/AgentRefine"]) == 0
    text = "".join(ElementTree.fromstring((out / "families.svg").read_text(encoding="utf-8")).itertext())
    assert "†: a part of the family" in text
    errors = capfd.readouterr().err.splitlines()
    assert all(line.startswith("wrote ") for line in errors), errors


def test_a_run_that_is_called_as_a_published_row_has_bars_of_its_own(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"jericho": [SOLVED] * 20}, name="GPT-4o")
    assert main(["report", str(run), "--figure", str(tmp_path / "out"), "--against", "GPT-4o"]) == 0
    found = {(r["run"], r["source"]) for r in rows(tmp_path / "out" / "families.csv")}
    assert found == {("GPT-4o", "published"), ("GPT-4o (ours)", "run")}


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
def test_slopes_where_runs_are_under_perturbations(tmp_path: Path) -> None:
    """Of a study as a whole; a picture of the families would mix perturbations, so there is none."""
    study, out = tmp_path / "study", tmp_path / "out"
    make_run(study / "unperturbed", {"alfworld": [SOLVED, SOLVED, HALF, NOTHING]}, name="m")
    make_run(study / "P2", {"alfworld": [SOLVED, HALF, HALF, NOTHING]}, name="m", perturb="P2")
    make_run(study / "P5", {"alfworld": [NOTHING] * 4}, name="m", perturb="P5")
    made_study(study, "sweep", ["unperturbed", "P2", "P5"])
    assert main(["report", str(study), "--figure", str(out)]) == 0
    found = {(r["perturbation"], r["measure"]): float(r["rate"]) for r in rows(out / "perturbations.csv")}
    assert found == {
        ("unperturbed", "success"): 0.5, ("P2", "success"): 0.25, ("P5", "success"): 0.0,
        ("unperturbed", "progress"): 0.625, ("P2", "progress"): 0.5, ("P5", "progress"): 0.0,
    }  # fmt: skip
    text = (out / "perturbations.svg").read_text(encoding="utf-8")
    assert "P2  25.0" in text
    assert (out / "perturbations.png").read_bytes().startswith(b"\x89PNG")
    assert not (out / "families.png").exists()
    labels = {r["run"] for r in rows(out / "progress_by_turn.csv")}
    assert labels == {"m (unperturbed)", "m (P2)", "m (P5)"}


@given(st.lists(st.floats(0, 100), max_size=10))
def test_labels_are_spread_apart_in_the_order_of_their_points(values: list[float]) -> None:
    heights = plots.spread(values, 5.0, 0.0, 100.0)
    pairs = sorted(zip(values, heights, strict=True))
    assert all(b[1] - a[1] >= 5.0 - 1e-6 for a, b in itertools.pairwise(sorted(pairs, key=lambda p: p[1])))
    assert all(-1e-6 <= height <= 100 + 1e-6 for height in heights)
    assert [p for _, p in pairs] == pytest.approx(sorted(heights)) or len(set(values)) < len(values)


@pytest.mark.slow
def test_the_same_runs_give_the_same_files(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"babyai": [SOLVED, HALF, NOTHING]})
    for name in ("one", "two"):
        assert main(["report", str(run), "--figure", str(tmp_path / name)]) == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_two_models_of_one_name_have_slopes_of_their_own(tmp_path: Path) -> None:
    runs = []
    for model, outcome in (("a", SOLVED), ("b", NOTHING)):
        for perturb in (None, "P2"):
            run = make_run(tmp_path / model / str(perturb), {"alfworld": [outcome] * 4}, perturb=perturb)
            manifest = json.loads((run / "manifest.json").read_text())
            manifest["identity"]["model"]["checkpoint_sha256"] = model
            (run / "manifest.json").write_text(json.dumps(manifest))
            runs.append(run)
    assert main(["report", *map(str, runs), "--figure", str(tmp_path / "out")]) == 0
    found = {(r["run"], r["rate"]) for r in rows(tmp_path / "out" / "perturbations.csv")}
    assert found == {("model (a/None)", "1.0"), ("model (b/None)", "0.0")}
    given = Given(specs(), tuple(Entry(run.name, (load_scored_run(run),)) for run in runs))
    assert list(groups_of(given, "alfworld")) == ["model (a/None)", "model (b/None)"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("AgentGym", "could be LLaMA-3-8B/AgentGym, Mistral-7B/AgentGym"),
        ("GPT4", "did you mean 'GPT/GPT-4o'"),
    ],
)
def test_a_published_row_must_be_named_clearly(
    tmp_path: Path, name: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run", {"babyai": [SOLVED]})
    assert main(["report", str(run), "--figure", str(tmp_path / "out"), "--against", name]) == 2
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


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


def drawn(folder: Path) -> list[dict[str, str]]:
    return rows(folder / "plots" / "scaling.csv")


def runs(folder: Path, *, series: str | None = None) -> list[Path]:
    """4k, 8k and 64k samples of data, with 1, 2 and 4 of 4 tasks solved."""
    made = []
    for size, solved in ((4000, 1), (64000, 4), (8000, 2)):
        label = {"data_size": str(size)} | ({"series": series} if series else {})
        outcomes = {"babyai": [SOLVED] * solved + [HALF] * (4 - solved)}
        made.append(make_run(folder / f"{series or 'run'}-{size}", outcomes, suite="open", label=label))
    return made


@pytest.mark.slow
def test_runs_are_drawn_over_their_label(tmp_path: Path) -> None:
    made = runs(tmp_path)
    assert main(["report", *map(str, made), "--x", "data_size", "--figure", str(tmp_path / "plots")]) == 0
    success = [(row["x"], row["rate"]) for row in drawn(tmp_path) if row["measure"] == "success"]
    assert success == [("4000.0", "0.25"), ("8000.0", "0.5"), ("64000.0", "1.0")]
    assert {row["axis"] for row in drawn(tmp_path)} == {"data_size"}
    svg = (tmp_path / "plots" / "scaling.svg").read_text()
    for text in ("data_size", "4000", "64000"):
        assert text in svg


@pytest.mark.slow
def test_a_file_says_it_for_runs_without_a_label(tmp_path: Path) -> None:
    made = runs(tmp_path)
    values = tmp_path / "epochs.json"
    values.write_text(json.dumps({run.name: i for i, run in enumerate(made)}))
    arguments = ["report", *map(str, made), "--x", f"epochs={values}", "--figure", str(tmp_path / "plots")]
    assert main(arguments) == 0
    places = [row["x"] for row in drawn(tmp_path) if row["measure"] == "success"]
    assert places == ["0.0", "1.0", "2.0"]


@pytest.mark.slow
def test_a_line_is_drawn_in_the_order_of_its_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries, drawn = [], list[dict[str, Any]]()
    for x in ("0.16", "0.4", "0.08"):
        run = make_run(tmp_path / x, {"babyai": [SOLVED] * 4}, label={"mixing_ratio": x})
        entries.append(Entry(x, (load_scored_run(run),)))
    monkeypatch.setattr(plots, "draw_over", lambda points, titles: drawn.extend(points))
    filled = EXHIBITS["figure9"].fill(Given(specs(), tuple(entries)))
    assert filled.figure is not None
    filled.figure()
    assert [row["x"] for row in drawn if row["measure"] == "success"] == [0.08, 0.16, 0.4]


def test_runs_of_several_series_are_a_line_each(tmp_path: Path) -> None:
    made = [*runs(tmp_path, series="plain"), *runs(tmp_path, series="refined")]
    assert main(["report", *map(str, made), "--x", "data_size", "--figure", str(tmp_path / "plots")]) == 0
    assert {row["series"] for row in drawn(tmp_path)} == {"plain", "refined"}
    assert "refined: success" in (tmp_path / "plots" / "scaling.svg").read_text()


@pytest.mark.parametrize("label", ["many", "nan"])
def test_a_label_that_is_no_number_or_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], label: str
) -> None:
    run = make_run(tmp_path / "run", {"babyai": [SOLVED]}, suite="open", label={"data_size": label})
    assert main(["report", str(run), "--x", "data_size", "--figure", str(tmp_path / "plots")]) == 2
    assert f"{label!r} is no number" in capsys.readouterr().err
    assert main(["report", str(run), "--x", "steps", "--figure", str(tmp_path / "plots")]) == 2
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
        (f"{'a' * 200_000},1\n", "not valid CSV"),
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


def test_a_finished_run_takes_a_label(tmp_path: Path, clean_home: Path) -> None:
    run = tmp_path / "run"
    arguments = ["run", "--model", "random", "--suite", "open", "--tasks", "babyai:0", "--max-turns", "2"]
    for labels in ([], ["--label", "data_size=1", "--label", "by=me"], ["--label", "data_size=2"], []):
        assert main([*arguments, "-o", str(run), *labels]) == 0
    assert load_scored_run(run).labels == {"data_size": "2", "by": "me"}
    assert len(read_manifest(run).sessions) == 1
