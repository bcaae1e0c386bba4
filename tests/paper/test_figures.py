"""The paper's figures: where labels stand, the order of points, marks, names, and files for `--x`."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import make_run

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.envs import specs
from evalharness.paper import plots
from evalharness.paper.exhibit import Entry, Given
from evalharness.paper.exhibits import EXHIBITS
from evalharness.paper.perturbed import group_runs
from evalharness.paper.x_values import read_x
from evalharness.results.figures import plots as common_plots
from evalharness.results.scored_run import load_scored_run

pytest.importorskip("matplotlib")

SOLVED, HALF, NOTHING = (True, 1.0), (False, 0.5), (False, 0.0)


@given(st.lists(st.floats(0, 100), max_size=10))
def test_labels_are_spread_apart_in_the_order_of_their_points(values: list[float]) -> None:
    heights = plots.spread(values, 5.0, 0.0, 100.0)
    pairs = sorted(zip(values, heights, strict=True))
    assert all(b[1] - a[1] >= 5.0 - 1e-6 for a, b in itertools.pairwise(sorted(pairs, key=lambda p: p[1])))
    assert all(-1e-6 <= height <= 100 + 1e-6 for height in heights)
    assert [p for _, p in pairs] == pytest.approx(sorted(heights)) or len(set(values)) < len(values)


@pytest.mark.slow
def test_a_line_is_drawn_in_the_order_of_its_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries, drawn = [], list[dict[str, Any]]()
    for x in ("0.16", "0.4", "0.08"):
        run = make_run(tmp_path / x, {"babyai": [SOLVED] * 4}, label={"mixing_ratio": x})
        entries.append(Entry(x, (load_scored_run(run),)))
    monkeypatch.setattr(common_plots, "draw_over", lambda points, titles: drawn.extend(points))
    filled = EXHIBITS["figure9"].fill(Given(specs(), tuple(entries)))
    assert filled.figure is not None
    filled.figure()
    assert [row["x"] for row in drawn if row["measure"] == "success"] == [0.08, 0.16, 0.4]


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


def test_two_models_of_one_name_are_two_rows(tmp_path: Path) -> None:
    runs = []
    for model, outcome in (("a", SOLVED), ("b", NOTHING)):
        for perturb in (None, "P2"):
            run = make_run(tmp_path / model / str(perturb), {"alfworld": [outcome] * 4}, perturb=perturb)
            manifest = json.loads((run / "manifest.json").read_text())
            manifest["identity"]["model"]["checkpoint_sha256"] = model
            (run / "manifest.json").write_text(json.dumps(manifest))
            runs.append(run)
    given = Given(specs(), tuple(Entry(run.name, (load_scored_run(run),)) for run in runs))
    assert list(group_runs(given, "alfworld")) == ["model (a/None)", "model (b/None)"]


@pytest.mark.slow
def test_marks_are_explained_where_they_are_and_names_fit(tmp_path: Path) -> None:
    whole = make_run(tmp_path / "whole", {"jericho": [SOLVED] * 7 + [NOTHING] * 13}, name="模型 " + "x" * 90)
    target = tmp_path / "figure.svg"
    assert main(["paper", "figure1", str(whole), "-o", str(target)]) == 0
    text = "".join(ElementTree.fromstring(target.read_text(encoding="utf-8")).itertext())
    assert "35.0" in text
    assert "x" * 20 in text
    assert "x" * 60 not in text
    assert "\u2020" not in text
    part = make_run(tmp_path / "part", {"jericho": [SOLVED]}, name="part")
    assert main(["paper", "figure1", str(part), "-o", str(target)]) == 0
    text = "".join(ElementTree.fromstring(target.read_text(encoding="utf-8")).itertext())
    assert "\u2020  " in text


def test_a_run_that_is_called_as_a_published_row_has_bars_of_its_own(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"jericho": [SOLVED] * 20}, name="AgentRefine")
    target = tmp_path / "figure.svg"
    assert main(["paper", "figure1", str(run), "-o", str(target)]) == 0
    text = "".join(ElementTree.fromstring(target.read_text(encoding="utf-8")).itertext())
    assert "AgentRefine (ours)" in text


@pytest.mark.slow
def test_slopes_are_labelled_with_the_rate_under_each_perturbation(tmp_path: Path) -> None:
    outcomes = {None: [SOLVED, SOLVED, HALF, NOTHING], "P2": [SOLVED, HALF, HALF, NOTHING]}
    runs = [make_run(tmp_path / str(p), {"alfworld": o}, name="m", perturb=p) for p, o in outcomes.items()]
    target = tmp_path / "figure.svg"
    assert main(["paper", "figure3", *map(str, runs), "-o", str(target)]) == 0
    text = "".join(ElementTree.fromstring(target.read_text(encoding="utf-8")).itertext())
    assert "P2  25.0" in text
