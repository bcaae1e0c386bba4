"""Chance-corrected scores with the floor's own error; published rows with derived intervals; cells by our labels."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import stdev

import numpy as np
import pytest
from audit import range_of, write_ranges
from made_runs import made_episode, make_run, make_task, published_hash

from evalharness import stats
from evalharness.cli import main
from evalharness.results.task_range import TaskRange, correct_rates, load_ranges
from tests.checks.test_audit import row
from tests.results.leaderboard.test_leaderboard import board, complete_run


def family(name: str) -> list[TaskRange]:
    return [row for row in load_ranges("agentboard") if row.task_id.split("/")[0] == name]


def test_the_floors_standard_error_comes_from_its_attempts() -> None:
    """Worked out from p (1 - p) / 4 of each task: 1.54 points in BabyAI, 0.65 in the held-out score."""
    assert correct_rates(family("babyai"), {}).floor_se["success_rate"] == pytest.approx(0.0154, abs=5e-5)
    held_out = [r for name in ("babyai", "sciworld", "pddl", "jericho") for r in family(name)]
    assert correct_rates(held_out, {}).floor_se["success_rate"] == pytest.approx(0.0065, abs=5e-5)


def test_samples_of_a_task_do_not_make_its_floor_more_certain() -> None:
    rows = family("babyai")
    once, thrice = (correct_rates(rows * times, {}).floor_se for times in (1, 3))
    assert thrice == pytest.approx(once)


def test_progress_varies_as_noted_and_at_most_as_its_mean_allows() -> None:
    one = replace(row("toy/a", 0.4, 1.0), floor_progress=0.4, floor_progress_sd=0.1)
    assert one.floor_variance("progress") == pytest.approx(0.1**2 / 5)
    generator = np.random.default_rng(1)
    for _ in range(200):
        attempts = generator.random(5) ** generator.integers(1, 9)
        noted = replace(
            one, floor_progress=float(attempts.mean()), floor_progress_sd=float(attempts.std(ddof=1))
        )
        bound = replace(noted, floor_progress_sd=None)
        assert noted.floor_variance("progress") <= bound.floor_variance("progress") + 1e-12  # type: ignore[operator]
    assert replace(one, floor_samples=1).floor_variance("success") is None


def test_the_audit_notes_how_much_the_attempts_varied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make_task("babyai", 0)
    progress = [0.0, 0.5, 0.5, 1.0, 0.25]
    attempts = [made_episode(task, i, (p == 1.0, p)) for i, p in enumerate(progress)]
    made = range_of([made_episode(task, 0, (True, 1.0))], attempts)
    assert made.floor_progress_sd == pytest.approx(stdev(progress))
    write_ranges(tmp_path / "toy.csv", [made])
    monkeypatch.setattr("evalharness.results.task_range.ranges_folder", lambda: tmp_path)
    load_ranges.cache_clear()
    [read] = load_ranges("toy")
    load_ranges.cache_clear()
    assert read.floor_progress_sd == pytest.approx(made.floor_progress_sd, abs=1e-6)


def test_a_known_floor_moves_the_scores_limits_and_an_uncertain_one_widens_them() -> None:
    score, limits, floor = 0.45, (0.36, 0.54), 0.446
    exact = stats.correct_limits(score, limits, floor, (floor, floor), 1.0)
    assert exact == pytest.approx([(end - floor) / (1 - floor) for end in limits])
    wide = stats.correct_limits(score, limits, floor, stats.limits_of_mean(floor, 0.0154, 560), 1.0)
    assert exact is not None
    assert wide is not None
    assert wide[0] < exact[0] - 0.005
    assert wide[1] > exact[1] + 0.005


@pytest.mark.parametrize("score", [0.0, 0.3, 0.9, 0.95, 1.0])
def test_limits_hold_the_corrected_score_at_every_edge(score: float) -> None:
    """Above the ceiling of 0.917, too: a policy may be better than the best known plans."""
    low, high = stats.wilson(round(60 * score), 60)
    found = stats.correct_limits(score, (low, high), 0.02, stats.limits_of_mean(0.02, 0.0078, 300), 0.917)
    assert found is not None
    assert found[0] <= (score - 0.02) / (0.917 - 0.02) <= found[1]
    assert found[0] < found[1]


def test_a_floor_that_may_reach_the_ceiling_gives_none() -> None:
    assert stats.correct_limits(0.5, (0.3, 0.7), 0.4, (0.2, 0.6), 0.6) is None


def test_a_floor_of_no_success_in_many_attempts_is_not_certain() -> None:
    low, high = stats.limits_of_mean(0.0, 0.0, 670)
    assert low == 0.0
    assert 0.004 < high < 0.007


def test_the_intervals_hold_the_truth() -> None:
    """2,000 simulations each, BabyAI's kind of floors; a floor that is taken as exact loses coverage."""
    from coverage_ratios import corrected_coverage

    floors = np.array([0.0, 0.2, 0.2, 0.4, 0.6, 0.6, 0.8, 1.0])
    for n, rate in ((20, 0.5), (112, 0.5), (282, 0.3)):
        exact, ours = corrected_coverage(n, rate, floors, 2000)
        assert 0.93 < ours < 0.98
        assert ours > exact


def test_published_rows_have_a_derived_interval_of_held_out_success(
    capsys: pytest.CaptureFixture[str],
) -> None:
    [found] = [r for r in board(capsys=capsys) if (r["series"], r["name"]) == ("LLaMA-3-8B", "AgentRefine")]
    solved = {112: 42, 90: 13, 60: 10, 20: 2}
    low, high = stats.stratified_score([[1.0] * k + [0.0] * (n - k) for n, k in solved.items()])
    assert (float(found["held_out_success_ci95_low"]), float(found["held_out_success_ci95_high"])) == (
        pytest.approx(low),
        pytest.approx(high),
    )
    assert found["held_out_progress_ci95_low"] == ""
    assert found["ci95_from"] == "printed rates"
    assert main(["leaderboard", "--format", "md"]) == 0
    assert "derived" in (text := capsys.readouterr().out)
    assert "19.3" in text


@pytest.mark.slow
def test_cells_by_our_labels_are_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = complete_run(tmp_path / "run", labels={"jericho": "ours"})
    [mine] = [r for r in board(folder, capsys=capsys) if r["name"] == "mine"]
    assert mine["ci95_from"] == "episodes"
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["leaderboard", str(folder)]) == 0
    text = capsys.readouterr().out
    assert max(len(line) for line in text.splitlines() if "mine" in line or "[" in line) <= 80
    marked = [line for line in text.splitlines() if "mine" in line and "#" in line]
    assert [line.count("50.0#") for line in marked] == [1]  # Jericho's cell alone
    assert "\n# " in text
    assert main(["leaderboard"]) == 0
    assert "#" not in capsys.readouterr().out
    for form, mark in (("md", "\\#"), ("latex", "50.0\\#")):
        assert main(["leaderboard", str(folder), "--format", form]) == 0
        assert mark in capsys.readouterr().out


def test_show_tells_the_corrected_interval_and_what_the_floor_is_handed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_run(tmp_path / "run", {"babyai": [(True, 1.0)] * 6 + [(False, 0.0)] * 4})
    tasks = [make_task("babyai", i) for i in range(10)]
    ranges = [replace(row(task.id, 0.2, 1.0), task_hash=published_hash(task)) for task in tasks]
    monkeypatch.setattr("evalharness.results.summarize.load_ranges", lambda *_: ranges)
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["show", str(folder), "--verbose", "--json", str(tmp_path / "s.json")]) == 0
    found = json.loads((tmp_path / "s.json").read_text())["families"]["babyai"]["reference"]
    low, high = found["chance_corrected_ci95"]["success_rate"]
    assert low < 0.5 < high
    text = " ".join(capsys.readouterr().out.split())
    assert f"50.0 [{100 * low:.1f}, {100 * high:.1f}]" in text
    assert "random valid action" in text
