"""`run --seed 0,1,2`: a study of several seeds with mean and spread."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, stdev

import pytest
from made_runs import make_run

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.cli.run import read_seeds
from evalharness.results.scored_run import load_scored_run
from evalharness.results.seeds import seed_study

SOLVED, HALF, NOTHING = (True, 1.0), (False, 0.5), (False, 0.0)
RUN = ["run", "--model", "random", "--suite", "open", "--tasks", "babyai", "--limit", "2"]


def test_mean_and_spread_are_over_seeds(tmp_path: Path) -> None:
    outcomes = {0: [SOLVED, HALF, NOTHING, NOTHING], 1: [SOLVED, SOLVED, HALF, NOTHING], 5: [NOTHING] * 4}
    runs = {
        seed: load_scored_run(make_run(tmp_path / str(seed), {"babyai": listed}, seed=seed, temperature=1))
        for seed, listed in outcomes.items()
    }
    study = seed_study(runs)
    success, progress = study.rows
    assert success.rates == (0.25, 0.5, 0.0)
    assert success.mean == pytest.approx(0.25)
    assert success.sd == pytest.approx(stdev([0.25, 0.5, 0.0]))
    assert success.ci95[0] < success.mean < success.ci95[1]
    assert progress.rates == (0.375, 0.625, 0.0)
    assert progress.mean == pytest.approx(mean(progress.rates))
    assert study.seeds == (0, 1, 5)


def test_only_tasks_that_every_seed_has_played_count(tmp_path: Path) -> None:
    runs = {
        seed: load_scored_run(
            make_run(tmp_path / str(seed), {"babyai": [SOLVED] * n}, seed=seed, temperature=1, limit=5)
        )
        for seed, n in ((0, 5), (1, 5))
    }
    lines = (tmp_path / "1" / "episodes.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "1" / "episodes.jsonl").write_text("".join(lines[:3]))
    runs[1] = load_scored_run(tmp_path / "1")
    study = seed_study(runs)
    assert {row.tasks for row in study.rows} == {3}
    assert study.notes == (
        "--limit 5: only the first tasks of each family; not representative (--draw is)",
        "2 results of tasks that not every seed has played are left out",
    )


def test_a_held_out_score_is_there_where_every_seed_has_it(tmp_path: Path) -> None:
    sizes = {"babyai": 112, "sciworld": 90, "pddl": 60, "jericho": 20}
    runs = {
        seed: load_scored_run(
            make_run(
                tmp_path / str(seed), {f: [outcome] * n for f, n in sizes.items()}, seed=seed, temperature=1
            )
        )
        for seed, outcome in ((0, SOLVED), (1, NOTHING))
    }
    [held] = [row for row in seed_study(runs).rows if (row.family, row.measure) == ("held_out", "success")]
    assert (held.tasks, held.rates, held.mean) == (282, (1.0, 0.0), 0.5)


@pytest.mark.slow
def test_the_command_plays_every_seed_and_a_further_one_extends_the_study(
    tmp_path: Path, clean_home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    study = tmp_path / "study"
    assert main([*RUN, "--seed", "0,1", "-o", str(study)]) == 0
    before = (study / "seed-0" / "episodes.jsonl").read_bytes()
    capsys.readouterr()
    assert main([*RUN, "--seed", "0-2", "-o", str(study), "--json", str(tmp_path / "out.json")]) == 0
    out = capsys.readouterr().out
    assert (study / "seed-0" / "episodes.jsonl").read_bytes() == before
    assert "random, 3 seeds" in out
    assert "seed 0 seed 1 seed 2" in out
    assert max(map(len, out.splitlines())) <= max(
        80, len(f"study folder: {study}  (pictures: evalharness report {study} --figure plots)")
    )
    data = json.loads((tmp_path / "out.json").read_text())
    assert data["seeds"] == [0, 1, 2]
    assert len(data["rows"][0]["rates"]) == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("3", "needs two seeds"),
        ("0,x", "give seeds as in"),
        ("2-0", "2-0 is no range of seeds"),
        ("0,,1", "give seeds as in"),
        ("-1,2", "give seeds as in"),
        ("9" * 5000 + ",1", "give seeds as in"),
    ],
)
def test_what_is_no_list_of_seeds_is_refused(text: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        read_seeds(text)


def test_seeds_are_sorted_and_each_counts_once() -> None:
    assert read_seeds("2, 0-1,1") == [0, 1, 2]
