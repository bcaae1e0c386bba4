"""Runs of several trainings (`--label training_seed=N`) in the exhibits: one row is the mean over seeds."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made_runs import make_run

from evalharness.cli import main

Outcomes = Sequence[tuple[bool, float]]


def outcomes(*solved: int) -> Outcomes:
    return [(bool(each), float(each)) for each in solved]


def make_runs(folder: Path, runs: dict[str, tuple[dict[str, str], Outcomes]], **more: Any) -> Path:
    for name, (labels, solved) in runs.items():
        make_run(
            folder / name,
            {"alfworld": solved},
            name=name.removesuffix("-None").removesuffix("-P1"),
            label=labels,
            **more,
        )
    return folder


def rows_of(exhibit: str, folder: Path, tmp_path: Path) -> list[dict[str, str]]:
    target = tmp_path / "rows.csv"
    assert main(["paper", exhibit, str(folder), "--csv", str(target)]) == 0
    return [row for row in csv.DictReader(target.open(encoding="utf-8")) if row["source"] == "run"]


SOME, MORE, NONE = outcomes(*[1, 0] * 10), outcomes(*[1] * 15, *[0] * 5), outcomes(*[0] * 20)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return make_runs(
        tmp_path / "study",
        {
            "full-seed0": ({"mode": "full", "training_seed": "0"}, SOME),
            "full-seed1": ({"mode": "full", "training_seed": "1"}, MORE),
            "all_turns-seed0": ({"mode": "all_turns", "training_seed": "0"}, NONE),
        },
    )


def test_a_row_is_the_mean_over_seeds_and_its_interval_is_wider_than_over_tasks(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, full = rows_of("table2", study, tmp_path)
    out = capsys.readouterr().out
    assert (full["name"], other["name"]) == ("full", "all_turns")
    assert float(full["alfworld_success"]) == pytest.approx(100 * (0.5 + 0.75) / 2)
    width = float(full["alfworld_success_ci95_high"]) - float(full["alfworld_success_ci95_low"])
    [alone] = rows_of("table2", study / "full-seed0", tmp_path)
    assert width > float(alone["alfworld_success_ci95_high"]) - float(alone["alfworld_success_ci95_low"])
    assert "trainings with seeds 0, 1" in " ".join(out.split())
    assert "one training" in " ".join(out.split())
    assert "temperature" not in out


def test_sizes_are_points_of_the_figure_and_perturbed_runs_stay_out(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    runs = {
        f"{size}-seed{seed}": ({"data_size": str(size), "training_seed": str(seed)}, found)
        for size, found in ((8, NONE), (16, SOME))
        for seed in (0, 1)
    }
    make_runs(folder, runs)
    found = rows_of("figure5", folder, tmp_path)
    assert [row["name"] for row in found] == ["8", "16"]
    assert [float(row["alfworld_success"]) for row in found] == [0.0, 50.0]


def test_a_perturbed_row_is_the_mean_over_the_same_trainings_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "study"
    for words, seeds in ((None, (MORE, SOME)), ("P1", (SOME, NONE))):
        runs = {
            f"full-seed{seed}-{words}": ({"mode": "full", "training_seed": str(seed)}, found)
            for seed, found in enumerate(seeds)
        }
        make_runs(folder, runs, perturb=words)
    [row] = rows_of("table3", folder, tmp_path)
    assert row["name"] == "full"
    assert float(row["p1_success"]) == pytest.approx(25.0)
    assert float(row["alfworld_success"]) == pytest.approx(62.5)
    # Both trainings lost, one half of the tasks and one a quarter: two seeds are no evidence of a loss.
    assert "-37.5 [-100.0, 100.0]" in capsys.readouterr().out


def test_the_pooled_difference_of_several_families_holds_seeds_and_tasks(tmp_path: Path) -> None:
    """One task counts once. Seeds that differ widen the interval; where they agree it is that over tasks."""
    widths = []
    for name, seeds in (("agree", (SOME, SOME)), ("differ", (MORE, NONE))):
        folder = tmp_path / name
        for mode, found in (("full", (SOME, SOME)), ("no_refine_loss", seeds)):
            for seed, solved in enumerate(found):
                run = f"{mode}-seed{seed}"
                played = {"babyai": solved, "sciworld": SOME[:10]}
                labels = {"mode": mode, "training_seed": str(seed)}
                make_run(folder / run, played, name=run, label=labels)
        target = tmp_path / f"{name}.json"
        assert main(["paper", "table2", str(folder), "--json", str(target)]) == 0
        [row] = [r for t in json.loads(target.read_text())["tables"][1:] for r in t["rows"]]
        assert row["name"] == "no_refine_loss - full"
        expected = 0.0 if name == "agree" else 100 * 20 * (0.375 - 0.5) / 30
        assert row["pooled_progress"] == pytest.approx(expected)
        widths.append(row["pooled_progress_ci95_high"] - row["pooled_progress_ci95_low"])
    assert widths[1] > 2 * widths[0]


def test_trainings_labelled_by_hand_are_one_row_in_every_command(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(
        study / "all_turns-seed1", {"alfworld": NONE}, name="other",
        label={"mode": "all_turns", "training_seed": "1"},
    )  # fmt: skip
    folders = [
        str(study / name) for name in ("full-seed0", "full-seed1", "all_turns-seed0", "all_turns-seed1")
    ]
    target = tmp_path / "compared.json"
    assert main(["compare", *folders, "--json", str(target)]) == 0
    [comparison] = json.loads(target.read_text())["comparisons"]
    assert main(["compare", ",".join(folders[:2]), ",".join(folders[2:]), "--json", str(target)]) == 0
    assert json.loads(target.read_text())["comparisons"] == [comparison]
    [success, _] = comparison["differences"]
    assert success["test"] == "trainings"
    assert success["difference"] == pytest.approx(-0.625)
    assert main(["paper", "table2", *folders, "--json", str(target)]) == 0
    [row] = json.loads(target.read_text())["tables"][1]["rows"]
    assert row["alfworld_success_p"] == success["p"]
    assert main(["paper", "table2", *folders, "--csv", str(target)]) == 0
    [row] = [r for r in csv.DictReader(target.open(encoding="utf-8")) if r["source"] == "difference"]
    assert float(row["alfworld_success_p"]) == success["p"]
    capsys.readouterr()
    assert main(["leaderboard", *folders, "--no-published", "--json", str(target)]) == 0
    assert [row["name"] for row in json.loads(target.read_text())["rows"]] == ["full", "all_turns"]
