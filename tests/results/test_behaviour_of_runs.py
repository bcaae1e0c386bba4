"""Behaviour figures of whole runs: rows, differences, intervals, the command and its tables."""

from __future__ import annotations

import csv
import doctest
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_runs import make_run

from evalharness import stats
from evalharness.cli import main
from evalharness.records.store import EPISODES
from evalharness.results.behaviour.figures import FIGURES
from evalharness.results.behaviour.rows import behaviour_rows, difference_rows, load_behaviour
from evalharness.results.tables import data_frames, write_parquet

SOLVED, HALF, NOTHING = (True, 1.0), (False, 0.5), (False, 0.0)


def test_rows_pool_turns_and_their_intervals_hold_the_value(tmp_path: Path) -> None:
    run = load_behaviour(make_run(tmp_path / "a", {"babyai": [SOLVED, HALF, NOTHING], "pddl": [NOTHING] * 2}))
    rows = {(row.family, row.figure): row for row in behaviour_rows(run)}
    # Made episodes look three times in the same room.
    assert rows["all", "repetition_rate"].value == pytest.approx(2 / 3)
    assert rows["all", "repetition_rate"].n == 15
    assert rows["babyai", "progress_episode_rate"].value == pytest.approx(2 / 3)
    assert rows["pddl", "progress_episode_rate"].value == 0.0
    assert rows["pddl", "progress_episode_rate"].high > 0.5  # two tasks do not show that it is rare
    assert rows["all", "first_progress_turn"].value == pytest.approx((2 + 2 + 30 + 30 + 30) / 5)
    assert not any(figure == "recovery_valid" for _, figure in rows)  # there is no error to recover from
    for row in rows.values():
        assert row.low <= row.value <= row.high


def test_two_runs_are_compared_over_their_common_tasks(tmp_path: Path) -> None:
    a = load_behaviour(make_run(tmp_path / "a", {"babyai": [NOTHING] * 4 + [SOLVED] * 4}))
    b = load_behaviour(make_run(tmp_path / "b", {"babyai": [SOLVED] * 4 + [NOTHING] * 2, "pddl": [SOLVED]}))
    rows = {row.figure: row for row in difference_rows(a, b)}
    row = rows["first_progress_turn"]
    assert row.n == 6
    assert row.baseline == pytest.approx((4 * 30 + 2 * 2) / 6)
    assert row.difference == pytest.approx((4 * 2 + 2 * 30) / 6 - (4 * 30 + 2 * 2) / 6)
    assert row.low < row.difference < row.high
    same = {row.figure: row for row in difference_rows(a, a)}["first_progress_turn"]
    assert (same.difference, same.low, same.high) == (0.0, 0.0, 0.0)  # paired: the same task is drawn in both


def test_other_turn_limits_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED]})
    b = make_run(tmp_path / "b", {"babyai": [SOLVED]}, max_turns=10)
    assert main(["show", "--behaviour", str(a), str(b)]) == 2
    assert "--max-turns" in capsys.readouterr().err


@pytest.mark.slow
def test_ratio_intervals_cover_what_they_should() -> None:
    """95 % intervals of a ratio over 40 tasks with episodes of uneven length: within what 300 trials can tell."""
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(300):
        base = generator.integers(1, 31, size=40)
        rate = generator.beta(2, 6, size=40)
        counts = np.stack([generator.binomial(base, rate), base], axis=-1)[:, None, :].astype(float)
        low, high = stats.bootstrap_ratios([counts])
        covered += low[0] <= 0.25 <= high[0]
    assert 0.91 <= covered / 300 <= 0.985


def test_analyze_writes_what_it_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    a = make_run(tmp_path / "a", {"babyai": [SOLVED, HALF], "pddl": [NOTHING]}, name="=evil\x1b[31m")
    b = make_run(tmp_path / "b", {"babyai": [SOLVED, SOLVED], "pddl": [HALF]})
    out, table = tmp_path / "out.json", tmp_path / "out.csv"
    assert main(["show", "--behaviour", str(a), str(b), "--json", str(out), "--csv", str(table)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "repeat a move" in shown
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert {row["model_name"] for row in rows} == {"'=evil\\x1b[31m", "model"}
    report = json.loads(out.read_text())
    assert len(report["runs"]) == 2
    assert {row["family"] for row in report["differences"][0]["figures"]} == {"all", "babyai", "pddl"}
    assert main(["show", "--behaviour", str(a), "--family", "babyia"]) == 2
    assert "'babyai'" in capsys.readouterr().err
    assert main(["show", "--behaviour", str(a), "--family", "babyai"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines()[1:])) <= 80


def test_the_tables_hold_the_columns_and_older_tables_are_made_anew(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", {"babyai": [SOLVED, NOTHING]})
    write_parquet(folder)
    episodes, turns = data_frames(folder)
    assert episodes["first_progress_turn"].tolist() == [2, pd.NA]
    assert episodes["repeated_turns"].tolist() == [2, 2]
    assert turns["repeated"].tolist() == [False, True, True] * 2
    assert episodes["no_effect_turns"].tolist() == [pd.NA, pd.NA]
    assert turns["no_effect"].tolist() == [pd.NA] * 6
    old = pd.read_parquet(folder / "turns.parquet").drop(columns=["repeated"])
    old.to_parquet(folder / "turns.parquet")
    assert (folder / "turns.parquet").stat().st_mtime_ns >= (folder / EPISODES).stat().st_mtime_ns
    assert "repeated" in data_frames(folder)[1]


def test_tables_are_those_of_the_episodes_whatever_was_edited(tmp_path: Path) -> None:
    """An edit that keeps the length of the file."""
    folder = make_run(tmp_path / "run", {"babyai": [SOLVED]})
    write_parquet(folder)
    path = folder / EPISODES
    path.write_bytes(path.read_bytes().replace(b'"a room"', b'"a hall"'))
    assert set(data_frames(folder)[1]["observation"]) == {"a hall"}


def test_the_examples_of_the_page_hold(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "behaviour.md"
    make_run(tmp_path / "oracle", {"babyai": [SOLVED]})
    examples = "\n".join(re.findall(r"```pycon\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {"folder": tmp_path}, page.name, str(page), 0)
    assert len(test.examples) == 3
    assert doctest.DocTestRunner().run(test).failed == 0


def test_a_mean_error_run_has_a_width_where_every_run_has_one_turn() -> None:
    tasks = np.array([[1.0, 1.0]] * 4 + [[0.0, 0.0]] * 6)
    low, high = stats.mean_length_interval([tasks], 30)
    assert low == 1.0
    assert 1.2 < high < 3.0
    assert np.isnan(stats.mean_length_interval([tasks[4:]], 30)).all()


def test_no_limit_of_a_mean_error_run_is_beyond_the_turn_limit() -> None:
    tasks = np.array([[1.0, 1.0]] * 17 + [[30.0, 1.0]] * 3)
    low, high = stats.mean_length_interval([tasks], 30)
    assert 1.0 <= low < 107 / 20 < high <= 30.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "n"), [("60 % of the tasks short, 10 % long", 60), ("errors in 40 % of the tasks", 20)]
)
def test_the_interval_of_a_mean_error_run_holds_the_truth_more_often(shape: str, n: int) -> None:
    """300 simulations; benchmarks/coverage_ratios.py makes more, of more shapes."""
    from coverage_ratios import SHAPES, length_coverage

    bootstrap, ours = length_coverage(SHAPES[shape], n, 300)
    assert bootstrap < 0.92 < ours


def test_the_row_of_a_mean_error_run_has_that_interval(tmp_path: Path) -> None:
    run = load_behaviour(make_run(tmp_path / "run", {"babyai": [(False, 0.0)] * 3}))
    index = next(i for i, figure in enumerate(FIGURES) if figure.name == "error_run_length")
    counts = np.zeros((3, len(FIGURES), 2))
    counts[:, index] = [[1, 1], [4, 2], [9, 1]]
    tasks = {"babyai": dict(zip(run.tasks["babyai"], counts, strict=True))}
    made = replace(run, tasks=tasks)
    row = next(row for row in behaviour_rows(made) if row.figure == "error_run_length")
    assert (row.low, row.high) == stats.mean_length_interval([counts[:, index]], made.max_turns)
    difference = next(row for row in difference_rows(made, made) if row.figure == "error_run_length")
    assert difference.low < difference.difference == 0 < difference.high


def test_analyze_says_that_nothing_corrects_for_the_number_of_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (make_run(tmp_path / name, {"babyai": [(True, 1.0)] * 3}) for name in ("a", "b"))
    for arguments in ([one], [one, other]):
        assert main(["show", "--behaviour", *map(str, arguments), "--json", str(tmp_path / "a.json")]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "corrected" in text
        assert json.loads((tmp_path / "a.json").read_text())["corrected_for_number_of_figures"] is False
