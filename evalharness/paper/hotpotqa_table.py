"""The exhibit `hotpotqa`: a table with published and own results on HotpotQA."""

from __future__ import annotations

from evalharness.paper.exhibit import Exhibit, Filled, Given
from evalharness.paper.family_table import fill, labels_in
from evalharness.results.leaderboard.standing_rows import Benchmark
from evalharness.results.scored_run import ScoredRun, of_family

NAME = "hotpotqa"
TITLE = "HotpotQA: exact match and F1 of 300 questions"


def _plays(run: ScoredRun) -> bool:
    return NAME in run.manifest.counts and run.perturbation is None


def _fill(given: Given) -> Filled:
    return fill(
        given.select(None, _plays),
        NAME,
        TITLE,
        Benchmark.of(given.specs, NAME),
        only=lambda run: of_family(run, NAME),
    )


EXHIBIT = Exhibit(
    NAME,
    TITLE,
    "questions with a search for Wikipedia's pages; the paper's rows allow 30 turns, ReAct and LATS 7",
    "evalharness run --model CKPT --suite hotpotqa --max-turns 30",
    lambda given: labels_in(given.select(None, _plays)),
    _fill,
)
