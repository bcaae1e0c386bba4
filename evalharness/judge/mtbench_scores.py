"""Compute scores from grades: of each turn, each category, and all answers, with intervals over questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from evalharness.judge.questions import TwoTurnQuestion
from evalharness.results.published import load_table
from evalharness.stats import Interval, bootstrap_mean

GradeKey = tuple[str, int]
"""(question id, turn from 1)"""


@dataclass(frozen=True)
class Score:
    name: str
    """`all`, `turn 1`, `turn 2`, or a category."""
    graded: int
    left_out: int
    mean: float | None
    interval: Interval | None
    """Bootstrap interval over questions, because a question's two grades are not independent; None below 3
    questions."""


def _score(name: str, questions: Sequence[Sequence[float | None]]) -> Score:
    """Average the grades. `questions` has a list of grades for each question."""
    grades = [[grade for grade in each if grade is not None] for each in questions]
    means = [fmean(each) for each in grades if each]
    graded = sum(map(len, grades))
    interval = bootstrap_mean(means) if len(means) > 2 else None  # two values are too few to bootstrap
    if interval is not None:  # keep the ends on the scale of 1 to 10
        interval = max(1.0, interval[0]), min(10.0, interval[1])
    # Average over questions, not grades: a question with one readable grade has the same weight as others.
    mean = fmean(means) if means else None
    return Score(name, graded, sum(map(len, questions)) - graded, mean, interval)


def scores(questions: Sequence[TwoTurnQuestion], grades: Mapping[GradeKey, float | None]) -> list[Score]:
    """Return the scores: overall, by turn, and by category in file order. Answers without a grade are omitted."""

    def of(chosen: Sequence[TwoTurnQuestion], turns: Sequence[int]) -> list[list[float | None]]:
        return [
            [grades[question.id, turn] for turn in turns if (question.id, turn) in grades]
            for question in chosen
        ]

    rows = [_score("all", of(questions, (1, 2)))]
    rows += [_score(f"turn {turn}", of(questions, (turn,))) for turn in (1, 2)]
    for category in dict.fromkeys(question.category for question in questions):
        mine = [question for question in questions if question.category == category]
        rows.append(_score(category, of(mine, (1, 2))))
    return rows


def read_published_scores() -> list[tuple[str, float]]:
    """Return (method, MT-bench score) of AgentRefine's appendix E."""
    return [(row.names["method"], row.numbers["mt_bench"].value) for row in load_table("mt_bench")]
