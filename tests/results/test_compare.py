"""`evalharness compare` over run folders with known outcomes."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from made_runs import make_run
from scipy.stats import binom

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.results.comparison import Comparison, compare_runs
from evalharness.results.difference import Difference
from evalharness.results.repeats import join_repeats, list_differences
from evalharness.results.scored_run import load_scored_run
from evalharness.results.trainings import load_joined
from evalharness.stats import difference_p_by_kind, holm, mcnemar_midp, paired_interval

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
    assert success.p == mcnemar_midp(10, 1)
    assert success.ci95 == paired_interval([[1.0] * 10 + [-1.0] + [0.0] * 9], success.p)
    progress = difference(comparison, "babyai", "progress")
    assert progress.difference == pytest.approx(0.225)
    assert progress.ci95[0] < 0.225 < progress.ci95[1]
    assert comparison.gained == tuple(f"babyai/agentboard/{i:03d}" for i in range(4, 14))
    assert comparison.lost == ("babyai/agentboard/000",)


def test_the_headline_is_corrected_among_runs_and_families_by_themselves(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", {"babyai": [NOTHING] * 20, "pddl": [NOTHING] * 20})
    b = make_run(
        tmp_path / "b", {"babyai": [SOLVED] * 8 + [NOTHING] * 12, "pddl": [SOLVED] * 3 + [NOTHING] * 17}
    )
    c = make_run(tmp_path / "c", {"babyai": [HALF] * 9 + [NOTHING] * 11, "pddl": [NOTHING] * 20})
    comparisons = compared(a, b, c)
    assert [str(c.run.folder.name) for c in comparisons] == ["b", "c"]
    headline = [difference(comparison, "pooled", "success") for comparison in comparisons]
    assert [d.p_holm for d in headline] == pytest.approx(holm([d.p for d in headline]))
    families = [d for each in comparisons for d in each.differences if d.family != "pooled"]
    alone = holm([d.p for d in families])
    least = [each.p_holm for each in headline for _ in range(4)]
    assert [d.p_holm for d in families] == pytest.approx(list(map(max, alone, least)))


def test_held_out_counts_every_task_once_and_needs_all_of_them(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", {family: [NOTHING] * n for family, n in HELD_OUT.items()})
    gains = {family: [SOLVED] * (n // 4) + [NOTHING] * (n - n // 4) for family, n in HELD_OUT.items()}
    b = make_run(tmp_path / "b", gains)
    [comparison] = compared(a, b)
    held_out = difference(comparison, "held_out", "success")
    assert held_out.n == 282
    assert held_out.difference == pytest.approx(70 / 282)
    assert held_out.test == "mcnemar"
    strata = [[1.0] * (n // 4) + [0.0] * (n - n // 4) for _, n in sorted(HELD_OUT.items())]
    assert held_out.ci95 == paired_interval(strata, held_out.p)
    progress = difference(comparison, "held_out", "progress")
    assert progress.ci95[0] < progress.difference < progress.ci95[1]
    assert held_out.ci95[0] < held_out.difference < held_out.ci95[1]
    short = make_run(tmp_path / "c", {**gains, "jericho": gains["jericho"][1:]})
    [partial] = compared(a, short)
    assert not any(d.family == "held_out" for d in partial.differences)
    assert any("withheld" in note for note in partial.notes)
    assert any("1 task that only A has played" in note for note in partial.notes)


def test_samples_of_a_task_are_averaged_before_anything_else(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", {"babyai": [NOTHING] * 6})
    b = make_run(tmp_path / "b", {"babyai": [[SOLVED, NOTHING]] * 6}, samples=2, temperature=1.0)
    [comparison] = compared(a, b)
    success = difference(comparison, "babyai", "success")
    assert (success.n, success.run, success.test) == (6, 0.5, "attempts")
    # In each task the single attempt is the solved one of three with probability 1/3: never, or in four tasks or more.
    assert success.p == pytest.approx((2 / 3) ** 6 + binom.sf(3, 6, 1 / 3), abs=0.02)
    assert any("samples 1 and 2" in note and "temperature 0.0 and 1.0" in note for note in comparison.notes)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"suite": "open"}, "differ in suite"),
        ({"max_turns": 50}, "--max-turns"),
        ({"labels": {"babyai": "ours"}}, "(official and ours)"),
        ({"goals": {"babyai": "changed"}}, "same task"),
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
    with pytest.raises(UserError, match="in common"):
        compared(a, b)


def test_the_command_prints_within_80_columns_and_writes_json_and_csv(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    full = {"alfworld": 134, **HELD_OUT}
    make_run(Path("a"), {family: [NOTHING] * n for family, n in full.items()}, name="\x1b[31mbase")
    make_run(Path("b"), {family: [SOLVED] * n for family, n in full.items()})
    assert main(["compare", "a", "b", "--verbose", "--json", "out.json", "--csv", "out.csv"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out
    assert "\x1b" not in out
    assert re.search(r"held-out     282 0\.0 100\.0 \+100\.0 \[9\d\.\d, 100\.0\] <\.001 <\.001", out)
    assert "282/0/0" in out
    assert "evalharness show b alfworld/agentboard/000" in out
    data = json.loads(Path("out.json").read_text())
    [comparison] = data["comparisons"]
    assert len(comparison["differences"]) == 12
    assert len(comparison["gained"]) == 416
    rows = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    assert [float(row["difference"]) for row in rows] == [d["difference"] for d in comparison["differences"]]


def test_two_full_runs_are_answered_on_one_small_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """24 lines less the prompt, seven columns, and the same table in a pipe."""
    monkeypatch.chdir(tmp_path)
    full = {"alfworld": 134, **HELD_OUT}
    for name, share in (("a", 4), ("b", 2)):
        outcomes = {f: [SOLVED] * (n // share) + [HALF] * (n - n // share) for f, n in full.items()}
        kinds = {f: [f"kind {i % 6}" for i in range(n)] for f, n in full.items()}
        make_run(Path(name), outcomes, name=f"lr2e-5/checkpoint-1{name}00", kinds=kinds)
    tables = []
    for width in (80, 10_000):
        monkeypatch.setenv("COLUMNS", str(width))
        assert main(["compare", "a", "b"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert "is better than" in lines[0]
        assert len(lines) <= 23
        tables.append(
            [line.split() for line in lines if re.match(r"(BabyAI|held-out|success %|progress %) ", line)]
        )
    assert tables[0] == tables[1]
    columns = [" ".join(line) for line in tables[0] if line[1] == "%"]
    assert columns == [f"{measure} % n A B B - A [95 % CI] p Holm" for measure in ("success", "progress")]


def test_markdown_has_the_answer_and_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = make_run(tmp_path / "a", {"babyai": [NOTHING] * 20}, name="[old](http://x)|*")
    b = make_run(tmp_path / "b", {"babyai": [SOLVED] * 15 + [NOTHING] * 5}, name="new")
    assert main(["compare", str(a), str(b), "--markdown"]) == 0
    out = capsys.readouterr().out
    first, *others = out.splitlines()
    assert first.startswith(r"**new is better than \[old\](http://x)\|\*: BabyAI success +75.0 points \[")
    assert any(line.startswith("| BabyAI | 20 | 0.0 | 75.0 | +75.0 [") for line in others)


@pytest.mark.parametrize(
    ("limit", "status"),
    [
        ("babyai < -2", 1),
        ("babyai_success < -2", 1),
        ("babyai < -60", 0),  # the loss is 50 points; its interval reaches down to below 60
        ("babyai.low < -60", 1),
        ("babyai > 0", 0),
        ("babyai_progress < -1", 0),
    ],
)
def test_a_limit_fails_where_the_interval_is_beyond_it(
    limit: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED] * 20})
    b = make_run(tmp_path / "b", {"babyai": [SOLVED] * 10 + [(False, 1.0)] * 10})
    assert main(["compare", str(a), str(b), "--fail-if", limit]) == status
    out = " ".join(capsys.readouterr().out.split())
    assert f"B {'fails' if status else 'passes'} --fail-if {limit}: " in out


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ("held_out < -2", "has no held_out"),
        ("babyai <= 1", "give a score, < or >"),
        ("babyai < 200", "-100 to 100"),
        ("all perturbations < -2", "has no all perturbations"),
    ],
)
def test_a_limit_that_cannot_be_tested_is_no_pass(
    limit: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED]})
    assert main(["compare", str(a), str(a), "--fail-if", limit]) == 2
    assert why in capsys.readouterr().err


def test_a_run_compared_with_itself_differs_in_nothing(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED, HALF, NOTHING] * 5})
    [comparison] = compared(a, a)
    for d in comparison.differences:
        assert (d.difference, d.p, d.p_holm, d.wins, d.losses) == (0.0, 1.0, 1.0, 0, 0)
        assert d.ci95[0] < 0 < d.ci95[1]
    assert comparison.gained == comparison.lost == ()
    assert len(comparison.notes) == 1
    assert "in A and B" in comparison.notes[0]


KINDS = [f"level {i // 4}" for i in range(112)]
"""28 levels with four tasks each."""


def test_p_over_tasks_and_p_over_kinds_stand_beside_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B solves 16 tasks that A does not, all of four levels, and loses none: over tasks these are 16 proofs."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    make_run(Path("a"), {"babyai": [NOTHING] * 112}, kinds={"babyai": KINDS})
    make_run(Path("b"), {"babyai": [SOLVED] * 16 + [NOTHING] * 96}, kinds={"babyai": KINDS})
    [comparison] = compared(Path("a"), Path("b"))
    success = difference(comparison, "babyai", "success")
    assert success.kinds == 28
    assert success.p == mcnemar_midp(16, 0)
    assert success.p_by_kind is not None
    assert success.ci95_by_kind is not None
    assert (success.p_by_kind < 0.05) == (not success.ci95_by_kind[0] <= 0 <= success.ci95_by_kind[1])
    assert 0.02 < success.p_by_kind < 0.2
    assert success.ci95[0] > 0
    assert main(["compare", "a", "b", "--verbose", "--json", "out.json", "--csv", "out.csv"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    [row, _] = json.loads(Path("out.json").read_text())["comparisons"][0]["differences"]
    assert f"<.001 <.001 {success.p_by_kind:.3f}" in out
    assert (row["p_by_kind"], row["kinds"]) == (success.p_by_kind, 28)
    assert "BabyAI 28 kinds, <.001" in " ".join(out.split())
    first, *_ = csv.DictReader(Path("out.csv").read_text().splitlines())
    assert float(first["ci95_by_kind_low"]) == row["ci95_by_kind"][0]


def test_every_row_has_p_interval_and_detectable_difference_of_one_test(tmp_path: Path) -> None:
    """ALFWorld has six kinds: 61 tasks won and none lost are significant after Holm's correction, and seven of ten
    stand beside a detectable difference that they are above."""
    types = ["pick", "clean", "heat", "cool", "examine", "two"]
    kinds = {"alfworld": [types[i % 6] for i in range(134)], "pddl": ["gripper"] * 10}
    a = make_run(tmp_path / "a", {"alfworld": [NOTHING] * 134, "pddl": [NOTHING] * 10}, kinds=kinds)
    gains = {"alfworld": [SOLVED] * 61 + [NOTHING] * 73, "pddl": [SOLVED] * 7 + [NOTHING] * 3}
    b = make_run(tmp_path / "b", gains, kinds=kinds)
    [comparison] = compared(a, b)
    for family in ("alfworld", "pddl"):
        success = difference(comparison, family, "success")
        assert success.p_holm < 0.05
        assert success.ci95[0] > 0
        assert success.detectable is not None
        assert success.difference > success.detectable
    alfworld = difference(comparison, "alfworld", "success")
    assert alfworld.smallest_p_by_kind == difference_p_by_kind([[1.0] * 134], [kinds["alfworld"]])
    assert alfworld.smallest_p_by_kind < 0.001
    assert difference(comparison, "pddl", "success").p_by_kind is None


def test_tasks_that_are_each_a_kind_of_their_own_have_one_answer(tmp_path: Path) -> None:
    kinds = {"jericho": [f"game {i}" for i in range(20)]}
    a = make_run(tmp_path / "a", {"jericho": [NOTHING] * 20}, kinds=kinds)
    b = make_run(tmp_path / "b", {"jericho": [HALF] * 8 + [NOTHING] * 12}, kinds=kinds)
    [comparison] = compared(a, b)
    progress = difference(comparison, "jericho", "progress")
    assert (progress.p_by_kind, progress.ci95_by_kind) == (progress.p, progress.ci95)


def test_repeats_joined_with_commas_are_one_run_with_the_attempts_of_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    for seed in (0, 1):
        turn = [SOLVED, NOTHING] if seed else [NOTHING, SOLVED]
        make_run(Path(f"a{seed}"), {"babyai": turn * 10}, seed=seed, temperature=1.0)
        make_run(Path(f"b{seed}"), {"babyai": [SOLVED] * 10 + turn * 5}, seed=seed, temperature=1.0)
    assert main(["compare", "a0,a1", "b0,b1", "--verbose", "--json", "out.json"]) == 0
    out = capsys.readouterr().out
    assert "a0, a1" in out
    assert "2 repeats" in out
    assert "not measured" not in out
    assert max(map(len, [line for line in out.splitlines() if "repeats" not in line])) <= 80
    [comparison] = json.loads(Path("out.json").read_text())["comparisons"]
    assert comparison["baseline"]["repeats"] == ["a0", "a1"]
    assert comparison["baseline"]["samples"] == 2
    row = comparison["differences"][0]
    assert (row["n"], row["baseline"], row["run"]) == (20, 0.5, 0.75)
    # Every task of A is solved by one of two attempts: variance 1/2 within, none between tasks.
    assert row["standard_error_attempts_baseline"] == pytest.approx((0.5 / 2 / 20) ** 0.5)
    assert row["standard_error_attempts_run"] == pytest.approx((0.25 / 2 / 20) ** 0.5)
    assert row["standard_error_tasks"] == 0.0
    lines = [line.split() for line in out.splitlines()]
    assert ["BabyAI,", "success", "0.0", "11.2", "7.9"] in lines


@pytest.mark.parametrize("options", [{"temperature": 1.0}, {"sampling": "model"}])
def test_repeats_that_share_a_seed_are_told(tmp_path: Path, options: dict[str, Any]) -> None:
    folders = [
        make_run(tmp_path / name, {"babyai": [SOLVED, NOTHING]}, **options) for name in ("a", "b", "c")
    ]
    joined = join_repeats([load_scored_run(folder) for folder in folders[:2]])
    [comparison] = compare_runs([joined, load_scored_run(folders[2])])
    assert any("of A share" in note for note in comparison.notes)
    assert any("in B " in note for note in comparison.notes)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a,other", "max_tokens"),
        ("a,a", "twice"),
        ("a,", "empty part"),
        ("a,nowhere", "nowhere"),
        ("a," + "x" * 300, "xxx"),
        ("", "empty part"),
    ],
)
def test_what_is_no_repeat_is_refused(
    tmp_path: Path,
    given: str,
    expected: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(Path("a"), {"babyai": [SOLVED]})
    make_run(Path("other"), {"babyai": [SOLVED]}, max_tokens=64, seed=1)
    assert main(["compare", given, "a"]) == 2
    assert expected in capsys.readouterr().err


def test_runs_of_other_turn_limits_are_no_repeats(tmp_path: Path) -> None:
    """A family with fewer turns than 30, and the same with 30 that were asked for."""
    own, asked = (
        load_scored_run(
            make_run(tmp_path / str(turns), {"hotpotqa": [SOLVED]}, suite="open", max_turns=turns)
        )
        for turns in (None, 30)
    )
    assert own.config["max_turns"] == asked.config["max_turns"]
    assert list_differences(own, asked) == ["turn_limits.hotpotqa"]


def test_a_folder_with_a_comma_in_its_name_is_one_run(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "a,b", {"babyai": [SOLVED]})
    assert load_joined(str(folder)).repeats == ()


def test_an_attempt_that_is_missing_withholds_the_held_out_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every task is there, one of them with one attempt of two."""
    whole = {family: [[(True, 1.0), (False, 0.5)]] * n for family, n in HELD_OUT.items()}
    part = {**whole, "jericho": [*whole["jericho"][:-1], [(True, 1.0)]]}
    for name, outcomes in (("a", whole), ("b", whole), ("c", part)):
        make_run(tmp_path / name, outcomes, samples=2, temperature=1.0)
    for other, is_there in (("b", True), ("c", False)):
        assert main(["compare", str(tmp_path / "a"), str(tmp_path / other)]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert ("held-out 282" in told) is is_there
        assert ("withheld" in told) is not is_there
