"""`run --seed 0,1,2`: a study of several seeds and their mean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_runs import make_run

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.cli.run import read_seeds
from evalharness.envs import specs
from evalharness.results.leaderboard.standing_rows import Benchmark
from evalharness.results.scored_run import load_scored_run
from evalharness.results.terminal.studies import put_seeds_together

SOLVED, NOTHING = (True, 1.0), (False, 0.0)
RUN = ["run", "--model", "random", "--suite", "open", "--tasks", "babyai", "--limit", "2"]


def test_a_row_for_each_seed_and_one_for_their_mean(tmp_path: Path) -> None:
    sizes = {"babyai": 112, "sciworld": 90, "pddl": 60, "jericho": 20}
    runs = [
        load_scored_run(
            make_run(
                tmp_path / str(seed), {f: [outcome] * n for f, n in sizes.items()}, seed=seed, temperature=1
            )
        )
        for seed, outcome in ((0, SOLVED), (1, NOTHING))
    ]
    rows = put_seeds_together(runs, Benchmark.of(specs())).rows()
    assert [row["name"] for row in rows] == ["mean of 2 seeds", "model (seed 0)", "model (seed 1)"]
    assert [row["held_out_success"] for row in rows] == [0.5, 1.0, 0.0]
    assert [row["babyai_progress"] for row in rows] == [0.5, 1.0, 0.0]
    assert rows[0]["babyai_progress_ci95_low"] < 0.5 < rows[0]["babyai_progress_ci95_high"]


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
    assert "mean of 3 seeds" in out
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert [row["name"] for row in rows] == ["mean of 3 seeds", *(f"random (seed {n})" for n in range(3))]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("3", "two seeds"),
        ("0,x", "1-4,9"),
        ("2-0", "2-0"),
        ("0,,1", "1-4,9"),
        ("-1,2", "1-4,9"),
        ("9" * 5000 + ",1", "1-4,9"),
    ],
)
def test_what_is_no_list_of_seeds_is_refused(text: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        read_seeds(text)


def test_seeds_are_sorted_and_each_counts_once() -> None:
    assert read_seeds("2, 0-1,1") == [0, 1, 2]
