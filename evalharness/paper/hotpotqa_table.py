"""The table of a family with its own published results: HotpotQA."""

from __future__ import annotations

from evalharness.paper.exhibit import Exhibit, Filled, Given
from evalharness.paper.family_table import fill, labels_in
from evalharness.results.leaderboard.standing_rows import Benchmark
from evalharness.results.scored_run import ScoredRun, of_family

NAME = "hotpotqa"
"""Name of this exhibit, of the published table, and of its family."""
TITLE = "HotpotQA: exact match and F1 of 300 questions"


def _plays(run: ScoredRun) -> bool:
    return NAME in run.manifest.counts and run.perturbation is None


def _fill(given: Given) -> Filled:
    return fill(
        given.some(None, _plays),
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
    lambda given: labels_in(given.some(None, _plays)),
    _fill,
)
