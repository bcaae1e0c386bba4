"""Build a leaderboard from published results and runs, and choose and sort its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from evalharness.base.errors import UserError, nearest
from evalharness.base.paths import ranges_folder
from evalharness.results.leaderboard.standing_rows import Benchmark, make_published_row, make_run_row
from evalharness.results.leaderboard.standings import Leaderboard, Standing, Verification
from evalharness.results.published import DEMO, MAIN, family_columns, load_table
from evalharness.results.run_labels import labels_of
from evalharness.results.scored_run import ScoredRun, of_family, require_same, require_same_turns
from evalharness.results.trainings import join_labelled

_WAY_OUT = "leave it out, or rank runs alone with --no-published"


def make_leaderboard(
    runs: Sequence[ScoredRun],
    benchmark: Benchmark,
    *,
    published: bool = True,
    sort: str | None = None,
    held_in: Mapping[Path, Sequence[str]] | None = None,
    verification: Mapping[Path, Verification] | None = None,
    notes: Sequence[str] = (),
) -> Leaderboard:
    """Build a leaderboard. `held_in`: run folder -> families that its model was trained on, as the user declares.
    `verification`: run folder -> whether a replay confirmed the run's numbers.

    Raise UserError if the runs have different protocols, or if `sort` or a family is unknown.
    """
    runs = join_labelled(runs)
    for run in runs:
        if benchmark.separate.issuperset(run.manifest.counts):
            family = min(run.manifest.counts)
            raise UserError(
                f"{family} has a separate leaderboard: evalharness leaderboard --table {family} {run.folder}"
            )
    own = benchmark.own
    if own:
        runs = [of_family(run, family) for run in runs for family in benchmark.sizes]
    require_one_table(runs, benchmark if published else None)
    rows = []
    if published:
        rows = load_table(own.name) if own else load_table(MAIN) + load_table(DEMO, ranges_folder())
    declared, checked = held_in or {}, {run.folder: _verification_of(run, verification or {}) for run in runs}
    standings = [make_published_row(row, benchmark) for row in rows]
    standings += [
        make_run_row(run, label, benchmark.prompts, declared.get(run.folder, ()), checked[run.folder])
        for run, label in zip(runs, labels_of(runs), strict=True)
    ]
    listed = {family for run in runs for family in run.manifest.counts} - benchmark.separate
    order = list(benchmark.sizes) if own else family_columns(rows)
    order += sorted(listed - set(order))
    names = dict(benchmark.titles)
    for run in runs:
        names |= run.titles
    for family in sorted({f for run in runs for f in declared.get(run.folder, ())}):
        if family not in order:
            raise UserError(f"--held-in {family}: no such family{nearest(family, order)}")
    board = Leaderboard(
        titles={family: names.get(family, family) for family in order},
        standings=tuple(standings),
        sorted_by=None,
        held_out=tuple(benchmark.held_out),
        measures=benchmark.measures,
        notes=(*((own.note,) if own and own.note and published else ()), *notes),
    )
    return _sort_by(board, sort) if sort else board


def choose_rows(board: Leaderboard, patterns: Sequence[str]) -> Leaderboard:
    """Keep the rows whose name or series matches a pattern, or all rows if there is no pattern. Raise UserError if a
    pattern matches no row."""
    chosen: set[int] = set()
    for pattern in patterns:
        rows = {
            i
            for i, s in enumerate(board.standings)
            if any(fnmatchcase(t, pattern) for t in (s.name, s.series))
        }
        if not rows:
            raise UserError(
                f"--rows {pattern}: no such row{nearest(pattern, [s.name for s in board.standings])}"
            )
        chosen |= rows
    kept = tuple(s for i, s in enumerate(board.standings) if not patterns or i in chosen)
    return replace(board, standings=kept)


def _verification_of(run: ScoredRun, verification: Mapping[Path, Verification]) -> Verification | None:
    """Return whether a run was verified. A mean over trainings is verified if all its runs were verified."""
    checked = [verification.get(each.folder) for each in run.trainings or (run,)]
    return checked[0] if len(set(checked)) == 1 else "not verified"


def require_one_table(runs: Sequence[ScoredRun], published: Benchmark | None) -> None:
    """Raise UserError if the runs follow different protocols, or another protocol than the rows of `published`."""
    if published is None:
        if not runs:
            raise UserError("--no-published needs a run folder: the leaderboard would be empty")
        advice = "a leaderboard compares only runs of one protocol"
        require_same(runs, "suite", lambda run: run.suite, advice)
        require_same_turns(runs, advice)
        require_same(runs, "perturbation", lambda run: run.perturbation or "none", advice)
        return
    for run in runs:
        if why := find_protocol_mismatch(run, published):
            raise UserError(f"{run.folder} {why}; {_WAY_OUT}")


def find_protocol_mismatch(run: ScoredRun, published: Benchmark) -> str | None:
    """Return the reason why a run cannot be compared with the published rows; None if a comparison is possible."""
    if run.manifest.suite not in published.suites:
        return f"was played on suite {run.suite}, the published rows on {published.suite}"
    if run.max_turns != published.max_turns and not published.own:
        return f"had at most {run.max_turns} turns, the published rows {published.max_turns}"
    if run.agent != "react":
        return f"was played by the agent {run.agent}, the published rows by react"
    if run.perturbation is not None:
        return f"was played under perturbation {run.perturbation}, the published rows under none"
    return None


def _sort_by(board: Leaderboard, column: str) -> Leaderboard:
    if column not in board.columns:
        raise UserError(f"--sort {column}: no such column{nearest(column, board.columns)}")

    def key(standing: Standing) -> tuple[bool, bool, float]:
        # Rank a run that has played only a part of the family below every run that has played the whole family.
        value = standing.values.get(column)
        return value is not None, not standing.is_incomplete(column), value or 0.0

    ordered = sorted(board.standings, key=key, reverse=True)
    return replace(board, standings=tuple(ordered), sorted_by=column)
