"""The first line of a screen answers its question, in words and with its interval."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_runs import Outcome, make_run

from evalharness.results.comparison import compare_runs
from evalharness.results.scored_run import load_scored_run
from evalharness.results.summarize import summarize
from evalharness.results.terminal.answers import answer_of_comparison, answer_of_run, headline_of
from evalharness.stats import mcnemar_power

SOLVED, HALF, NOTHING = (True, 1.0), (False, 0.5), (False, 0.0)
SIZES = {"babyai": 112, "sciworld": 90, "pddl": 60, "jericho": 20}
TITLES = {"babyai": "BabyAI"}


def solved(n: int, of: int) -> list[Outcome]:
    return [SOLVED] * n + [NOTHING] * (of - n)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ({f: solved(n // 2, n) for f, n in SIZES.items()}, "held-out success 50.0 % [44.2, 55.8], 282 tasks"),
        ({"babyai": solved(3, 10)}, "BabyAI success 30.0 % [9.8, 60.3], 10/112 tasks"),
        (
            {"pddl": solved(30, 60), "jericho": solved(10, 20)},
            "success 50.0 % [39.5, 60.5], 80 tasks of 2 families pooled; this is not the held-out score",
        ),
    ],
)
def test_a_run_is_answered_by_the_score_it_has(
    outcomes: dict[str, list[Outcome]], expected: str, tmp_path: Path
) -> None:
    assert answer_of_run(summarize(make_run(tmp_path / "run", outcomes)), TITLES) == expected


def test_an_unfinished_run_has_no_score_over_families(tmp_path: Path) -> None:
    outcomes = {"babyai": [[SOLVED, NOTHING]] * 4, "pddl": [[SOLVED]] * 2}
    folder = make_run(tmp_path / "run", outcomes, samples=2, temperature=1)
    assert answer_of_run(summarize(folder), TITLES) == "no score yet: 10 of 12 episodes are played"


def answer(tmp_path: Path, *numbers: int) -> str:
    """Of runs that solve so many of 60 tasks; the first against the second one."""
    runs = [
        load_scored_run(make_run(tmp_path / str(i), {"babyai": solved(n, 60)}, name=f"m{i}"))
        for i, n in enumerate(numbers)
    ]
    comparisons = compare_runs(runs)
    return answer_of_comparison(comparisons[0], ("old", "new"), TITLES, len(comparisons))


def test_a_comparison_says_which_run_is_better_and_by_how_much(tmp_path: Path) -> None:
    assert answer(tmp_path / "up", 10, 30).startswith("new is better than old: BabyAI success +33.3 points [")
    down = answer(tmp_path / "down", 30, 10)
    assert down.startswith("new is worse than old: BabyAI success -33.3 points [")
    assert down.endswith("p <.001")


def test_a_difference_that_is_not_significant_says_how_many_tasks_would_show_it(tmp_path: Path) -> None:
    text = answer(tmp_path, 10, 13)
    assert text.startswith("no significant difference between new and old: BabyAI success +5.0 points [")
    needed = int(text.split("about ")[1].split(" tasks")[0].replace(",", ""))
    assert mcnemar_power(needed, 0.05, 0.05) == pytest.approx(0.8, abs=0.05)


def test_equal_runs_say_which_difference_would_have_been_seen(tmp_path: Path) -> None:
    runs = [load_scored_run(make_run(tmp_path / n, {"babyai": solved(9, 60)})) for n in "ab"]
    [comparison] = compare_runs(runs)
    detectable = headline_of(comparison.differences).detectable
    assert detectable is not None
    assert answer_of_comparison(comparison, ("a", "b"), TITLES).endswith(
        f"{100 * detectable:.1f} points would have been detected"
    )


def test_a_difference_that_several_comparisons_explain_is_not_called_one(tmp_path: Path) -> None:
    assert "with Holm's correction for 4 comparisons" in answer(tmp_path, 10, 16, 10, 10, 10)
