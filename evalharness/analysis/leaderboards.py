"""Which rows belong in one leaderboard: of all families, or of one that has a table of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from envs.base import MAX_TURNS, EnvSpec
from evalharness.analysis.published import MAIN, family_columns, load_table
from evalharness.analysis.run_labels import labels_of
from evalharness.analysis.scored_run import ScoredRun, of_family, require_same, require_same_turns
from evalharness.analysis.task_range import (
    load_ranges,
)
from evalharness.errors import UserError, nearest
from evalharness.protocol.prompt import load_prompt
from evalharness.suites.draws import expected_tasks

if TYPE_CHECKING:
    pass
from evalharness.analysis.standing_rows import Benchmark, own_row, published_apart, published_row
from evalharness.analysis.standings import PUBLISHED_SUITE, Leaderboard, Standing, Verification

_BY_CALLS = "acts by tool calls, the published rows by lines of text"
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
    """`held_in`: folder of a run -> families that its model was trained on, as the user declares; `verification`:
    folder of a run -> whether it was replayed.

    Raises UserError where rows do not belong in one table, or `sort` or a declared family is none.
    """
    for run in runs:
        if benchmark.apart.issuperset(run.manifest["counts"]):
            family = min(run.manifest["counts"])
            raise UserError(
                f"{run.folder} has a table of its own: evalharness leaderboard --table {family} RUN"
            )
    require_one_table(list(runs), published)
    rows = load_table(MAIN) if published else []
    ranges = load_ranges(PUBLISHED_SUITE)
    standings = [published_row(row, benchmark, ranges) for row in rows]
    declared = held_in or {}
    checked = verification or {}
    standings += [
        own_row(run, label, benchmark.prompts, declared.get(run.folder, ()), checked.get(run.folder))
        for run, label in zip(runs, _names(runs), strict=True)
    ]
    listed = {family for run in runs for family in run.manifest["counts"]} - benchmark.apart
    order = [*family_columns(rows), *sorted(listed - set(family_columns(rows)))]
    names = dict(benchmark.titles)
    for run in runs:
        names |= run.titles
    for family in {family for families in declared.values() for family in families}:
        if family not in order:
            raise UserError(f"--held-in {family}: no such family{nearest(family, order)}")
    board = Leaderboard(
        titles={family: names.get(family, family) for family in order},
        standings=tuple(standings),
        sorted_by=None,
        held_out=tuple(benchmark.held_out),
        notes=tuple(notes),
    )
    return _sorted(board, sort) if sort else board


def own_table(specs: Mapping[str, EnvSpec], family: str) -> EnvSpec:
    """The family of that name, if it has a table of its own; else raises UserError."""
    apart = sorted(name for name, spec in specs.items() if spec.published is not None)
    if family not in apart:
        raise UserError(f"--table {family}: no such table{nearest(family, apart)}")
    return specs[family]


def _names(runs: Sequence[ScoredRun]) -> list[str]:
    """A submission is called what its submitter says."""
    own = iter(labels_of([run for run in runs if not run.submitted]))
    return [run.submitted.name if run.submitted else next(own) for run in runs]


def make_own_leaderboard(
    runs: Sequence[ScoredRun], spec: EnvSpec, *, published: bool = True, sort: str | None = None
) -> Leaderboard:
    """The table of a family that has published results of its own. Raises UserError as `make_leaderboard` does."""
    table = spec.published
    if table is None:
        raise UserError(f"--table {spec.family}: {spec.title} is in the main table; leave --table out")
    runs = [of_family(run, spec.family) for run in runs]
    rows = load_table(table.name) if published else []
    if published:
        for run in runs:
            if run.action_interface != "react":
                raise UserError(f"{run.folder} {_BY_CALLS}; {_WAY_OUT}")
            if run.manifest["suite"] != table.suite or run.perturbation is not None:
                played = f"suite {run.suite}, perturbation {run.perturbation or 'none'}"
                raise UserError(
                    f"{run.folder} was played on {played}, the published rows on {table.suite} without any; "
                    f"{_WAY_OUT}"
                )
    else:
        require_one_table(runs, published=False)
    n = expected_tasks(spec, table.suite, 0, None)
    limit = min(spec.max_turns, MAX_TURNS)
    prompts = {spec.family: load_prompt(spec).sha256}
    board = Leaderboard(
        titles={spec.family: spec.title},
        standings=(
            *(published_apart(row, spec, n, limit) for row in rows),
            *(own_row(run, label, prompts, ()) for run, label in zip(runs, labels_of(runs), strict=True)),
        ),
        sorted_by=None,
        held_out=(),
        measures={"success": spec.scores.success, "progress": spec.scores.progress},
        notes=(table.note,) if published and table.note else (),
    )
    return _sorted(board, sort) if sort else board


def require_one_table(runs: list[ScoredRun], published: bool) -> None:
    """Raises UserError where runs are not of one protocol, or (`published`) not of the published rows'."""
    if not published:
        if not runs:
            raise UserError("--no-published leaves nothing: name a run folder")
        advice = "one table holds runs of one protocol only"
        require_same(runs, "suite", lambda run: run.suite, advice)
        require_same_turns(runs, advice)
        require_same(runs, "action interface", lambda run: run.action_interface, advice)
        require_same(runs, "perturbation", lambda run: run.perturbation or "none", advice)
        return
    for run in runs:
        if why := not_beside_published(run):
            raise UserError(f"{run.folder} {why}; {_WAY_OUT}")


def not_beside_published(run: ScoredRun) -> str | None:
    """Why a run cannot stand beside the published rows; None where it can."""
    if run.manifest["suite"] != PUBLISHED_SUITE:
        return f"was played on suite {run.suite}, the published rows on {PUBLISHED_SUITE}"
    if run.max_turns != MAX_TURNS:
        return f"had at most {run.max_turns} turns, the published rows {MAX_TURNS}"
    if run.action_interface != "react":
        return _BY_CALLS
    if run.perturbation is not None:
        return f"was played under perturbation {run.perturbation}, the published rows under none"
    return None


def _sorted(board: Leaderboard, column: str) -> Leaderboard:
    if column not in board.columns:
        raise UserError(f"--sort {column}: no such column{nearest(column, board.columns)}")

    def key(standing: Standing) -> tuple[bool, bool, float]:
        # A part of a family is no better than the whole of it, whatever its rate.
        value = standing.values.get(column)
        return value is not None, not standing.is_incomplete(column), value or 0.0

    ordered = sorted(board.standings, key=key, reverse=True)
    return replace(board, standings=tuple(ordered), sorted_by=column)
