"""Show the runs of a study as rows of a leaderboard, and compare each run with the first run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from evalharness.results.comparison import Comparison, compare_runs
from evalharness.results.leaderboard.leaderboards import make_leaderboard
from evalharness.results.leaderboard.standing_rows import Benchmark, make_run_row
from evalharness.results.leaderboard.standings import Leaderboard
from evalharness.results.leaderboard.table import print_leaderboard
from evalharness.results.repeats import join_repeats
from evalharness.results.scored_run import ScoredRun
from evalharness.results.terminal.comparison import print_comparisons


@dataclass(frozen=True)
class StudyRuns:
    board: Leaderboard
    comparisons: tuple[Comparison, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        return self.board.rows()

    def to_json(self) -> dict[str, Any]:
        return {**self.board.to_json(), "comparisons": [each.to_json() for each in self.comparisons]}


def put_seeds_together(runs: Sequence[ScoredRun], benchmark: Benchmark) -> StudyRuns:
    """Return a row for the mean and a row for each run. Raise UserError if more than the seeds of the runs differs."""
    mean = make_run_row(join_repeats(runs), f"mean of {len(runs)} seeds", benchmark.prompts, ())
    board = _board(runs, benchmark)
    return StudyRuns(replace(board, standings=(mean, *board.standings)))


def put_agents_together(runs: Sequence[ScoredRun], benchmark: Benchmark) -> StudyRuns:
    """Return a row for each run, and compare each agent with the first. Raise UserError if the protocols differ."""
    return StudyRuns(_board(runs, benchmark), tuple(compare_runs(runs)) if len(runs) > 1 else ())


def _board(runs: Sequence[ScoredRun], benchmark: Benchmark) -> Leaderboard:
    return make_leaderboard(runs, replace(benchmark, separate=frozenset()), published=False)


def print_study_runs(console: Console, study: StudyRuns, *, verbose: bool = False) -> None:
    """Print the comparisons if there are any, then the leaderboard."""
    if study.comparisons:
        print_comparisons(console, study.comparisons, verbose=verbose)
        console.print()
    print_leaderboard(console, study.board, verbose=verbose)
