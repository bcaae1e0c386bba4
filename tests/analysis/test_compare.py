"""`evalharness compare` over run folders with known outcomes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from made_runs import make_run
from scipy.stats import binomtest

from evalharness.analysis.comparison import Comparison, Difference, compare_runs
from evalharness.analysis.scored_run import load_scored_run
from evalharness.cli import main
from evalharness.errors import UserError
from evalharness.stats import holm, newcombe_paired

SOLVED, HALF, NOTHING = (True, 1.0), (False, 0.5), (False, 0.0)
HELD_OUT = {"babyai": 112, "sciworld": 90, "pddl": 60, "jericho": 20}


def compared(*folders: Path) -> list[Comparison]:
    return compare_runs([load_scored_run(folder) for folder in folders])


def difference(comparison: Comparison, family: str, measure: str) -> Difference:
    return next(d for d in comparison.differences if (d.family, d.measure) == (family, measure))


def test_success_and_progress_are_paired_by_task(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED] * 4 + [HALF] * 10 + [NOTHING] * 6})
    b = make_run(tmp_path / "b", {"babyai": [HALF] * 1 + [SOLVED] * 13 + [NOTHING] * 6})
    [comparison] = compared(a, b)
    success = difference(comparison, "babyai", "success")
    assert (success.baseline, success.run) == (0.2, 0.65)
    assert success.difference == pytest.approx(0.45)
    assert (success.wins, success.ties, success.losses) == (10, 9, 1)
    assert success.p == pytest.approx(binomtest(1, 11).pvalue)
    assert success.ci95 == newcombe_paired(3, 10, 1, 6)
    progress = difference(comparison, "babyai", "progress")
    assert progress.difference == pytest.approx(0.225)
    assert progress.ci95[0] < 0.225 < progress.ci95[1]
    assert comparison.gained == tuple(f"babyai/agentboard/{i:03d}" for i in range(4, 14))
    assert comparison.lost == ("babyai/agentboard/000",)


def test_holm_is_over_every_test_of_every_run(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", {"babyai": [NOTHING] * 20, "pddl": [NOTHING] * 20})
    b = make_run(
        tmp_path / "b", {"babyai": [SOLVED] * 8 + [NOTHING] * 12, "pddl": [SOLVED] * 3 + [NOTHING] * 17}
    )
    c = make_run(tmp_path / "c", {"babyai": [HALF] * 9 + [NOTHING] * 11, "pddl": [NOTHING] * 20})
    comparisons = compared(a, b, c)
    assert [str(c.run.folder.name) for c in comparisons] == ["b", "c"]
    every = [d for comparison in comparisons for d in comparison.differences]
    assert len(every) == 8
    assert [d.p_holm for d in every] == pytest.approx(holm([d.p for d in every]))


def test_held_out_counts_every_task_once_and_needs_all_of_them(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", {family: [NOTHING] * n for family, n in HELD_OUT.items()})
    gains = {family: [SOLVED] * (n // 4) + [NOTHING] * (n - n // 4) for family, n in HELD_OUT.items()}
    b = make_run(tmp_path / "b", gains)
    [comparison] = compared(a, b)
    held_out = difference(comparison, "held_out", "success")
    assert held_out.n == 282
    assert held_out.difference == pytest.approx(70 / 282)
    assert (held_out.test, held_out.interval) == ("mcnemar", "bootstrap")
    assert held_out.ci95[0] < held_out.difference < held_out.ci95[1]
    short = make_run(tmp_path / "c", {**gains, "jericho": gains["jericho"][1:]})
    [partial] = compared(a, short)
    assert not any(d.family == "held_out" for d in partial.differences)
    assert any("held-out score withheld" in note for note in partial.notes)
    assert any("1 tasks that only the first run has played" in note for note in partial.notes)


def test_samples_of_a_task_are_averaged_before_anything_else(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", {"babyai": [NOTHING] * 6})
    b = make_run(tmp_path / "b", {"babyai": [[SOLVED, NOTHING]] * 6}, samples=2, temperature=1.0)
    [comparison] = compared(a, b)
    success = difference(comparison, "babyai", "success")
    assert (success.n, success.run, success.test, success.interval) == (6, 0.5, "permutation", "bootstrap")
    assert success.p == 2 / 2**6
    assert any("samples 1 and 2" in note and "temperature 0.0 and 1.0" in note for note in comparison.notes)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"suite": "open"}, "differ in suite"),
        ({"max_turns": 50}, "--max-turns"),
        ({"labels": {"babyai": "ours"}}, "different labels"),
        ({"goals": {"babyai": "changed"}}, "not the same task"),
    ],
)
def test_what_is_not_comparable_is_refused(
    tmp_path: Path, other: dict[str, object], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED]})
    b = make_run(tmp_path / "b", {"babyai": [SOLVED]}, **other)  # type: ignore[arg-type]
    assert main(["compare", str(a), str(b)]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert str(a) in error
    assert str(b) in error


def test_runs_without_a_common_task_are_refused(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED]})
    b = make_run(tmp_path / "b", {"pddl": [SOLVED]})
    with pytest.raises(UserError, match="no task in common"):
        compared(a, b)


def test_the_command_prints_within_80_columns_and_writes_json_and_csv(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    full = {"alfworld": 134, **HELD_OUT}
    make_run(Path("a"), {family: [NOTHING] * n for family, n in full.items()}, name="\x1b[31mbase")
    make_run(Path("b"), {family: [SOLVED] * n for family, n in full.items()})
    assert main(["compare", "a", "b", "--json", "out.json", "--csv", "out.csv"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out
    assert "\x1b" not in out
    assert "held-out     282 0.0 100.0 +100.0 [100.0, 100.0] <.0001" in out
    assert "282/0/0" in out
    assert "evalharness show b alfworld/agentboard/000" in out
    data = json.loads(Path("out.json").read_text())
    [comparison] = data["comparisons"]
    assert len(comparison["differences"]) == 12
    assert len(comparison["gained"]) == 416
    rows = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    assert [float(row["difference"]) for row in rows] == [d["difference"] for d in comparison["differences"]]


def test_a_run_compared_with_itself_differs_in_nothing(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED, HALF, NOTHING] * 5})
    [comparison] = compared(a, a)
    for d in comparison.differences:
        assert (d.difference, d.p, d.p_holm, d.wins, d.losses) == (0.0, 1.0, 1.0, 0, 0)
    assert comparison.gained == comparison.lost == ()
    assert comparison.notes == ()
