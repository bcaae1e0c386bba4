"""Print a leaderboard as a table in the layout of the AgentRefine paper."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from evalharness.base.terminal import line, remark
from evalharness.base.text import printable
from evalharness.results.html.document import percent
from evalharness.results.leaderboard.marked_rows import (
    DIFFERS,
    ESTIMATE,
    MARKS,
    OWN_LABELS,
    PART,
    columns_of,
    row_of,
)
from evalharness.results.leaderboard.standings import STATED, Leaderboard, Standing
from evalharness.results.score import HELD_OUT
from evalharness.results.tabular.table import Cell, Column, Row, Table
from evalharness.results.tabular.text import OURS, print_table, text_of

STATED_MARK = "\u00a7"
"""Mark after the name of a run: a note says which facts about the run (`STATED`) a replay cannot check."""
DERIVED_MARK = "~"
_PART_NOTE = f"{MARKS[PART]}; sorted below the rows of complete families"
_DEVIATES_NOTE = (
    f"{DIFFERS} other protocol than the other rows: its note below names prompts, token limits or sampling"
)
_VERIFIED_NOTE = (
    "verified: every action was replayed here, and the numbers follow from the actions; not verified: "
    "not replayed here"
)
_STATED_NOTE = (
    f"{STATED_MARK} stated by the run, a replay cannot check it: {', '.join(STATED)}; without {DIFFERS}, the "
    "run states default settings"
)
_DERIVED_NOTE = f"{DERIVED_MARK} derived from the printed rates and the number of tasks, not from episodes"


def footnotes(board: Leaderboard, *, derived: bool = True) -> list[str]:
    """Explain the marks, and describe each own run. `derived`: the table shows the intervals of published rows."""
    rows = board.standings
    verified = any(s.verification for s in rows)
    legend = {
        _DERIVED_NOTE: derived
        and any(not s.ours and s.values.get(f"{HELD_OUT}_success") is not None for s in rows),
        MARKS["*"]: any(s.held_in for s in rows),
        MARKS[OWN_LABELS]: any(s.has_own_labels(column) for s in rows for column in board.columns),
        _PART_NOTE: any(s.incomplete for s in rows),
        MARKS[ESTIMATE]: any(s.estimated for s in rows),
        _DEVIATES_NOTE: any(s.deviations for s in rows),
        _VERIFIED_NOTE: verified,
        _STATED_NOTE: verified,
    }
    notes = [*board.notes, *(note for note, applies in legend.items() if applies)]
    for s in rows:
        if s.ours:
            about = [f"suite {s.suite}", f"at most {s.max_turns} turns", *s.deviations, *s.notes]
            notes.append(f"{s.name} ({s.folder}): {'; '.join(about)}")
    return [printable(note, single_line=True) for note in notes]


def table_of(board: Leaderboard, *, series: bool = False) -> Table:
    """Return a table with every row and column. `series`: also group rows by series if they are sorted by a column."""
    names = [standing.name for standing in board.standings]
    rows = []
    for standing in board.standings:
        row = row_of(board, standing, STATED_MARK if standing.stated else "")
        if board.sorted_by and not series:
            name = f"{row.name} ({row.group})" if names.count(row.name) > 1 else row.name
            row = replace(row, name=name, group="")
        rows.append(row)
    return Table("", columns_of(board), tuple(rows), "%", tuple(footnotes(board)))


def _with_verification(table: Table, board: Leaderboard) -> Table:
    """Add `[verified]` or `[not verified]` after the name of each row whose verification was asked for."""
    rows = (
        replace(row, marks=f"{row.marks} [{standing.verification}]") if standing.verification else row
        for row, standing in zip(table.rows, board.standings, strict=True)
    )
    return replace(table, rows=tuple(rows))


def answers(board: Leaderboard) -> list[str]:
    """Return a line for each own run: its held-out success, and the number of published rows with a higher one."""
    key, lines = f"{HELD_OUT}_success", []
    published = [
        v for s in board.standings if s.source == "published" and (v := s.values.get(key)) is not None
    ]
    for s in board.standings:
        if not s.ours:
            continue
        if (value := s.values.get(key)) is None:
            lines.append(f"{s.name}: no held-out score")
            continue
        rate, _, limits = percent(value, s.ci95.get(key)).partition(" ")
        above = sum(other > value for other in published)
        among = f"; {above} of {len(published)} published rows are higher" if published else ""
        estimated = " (estimated)" if s.estimated else ""
        lines.append(f"{s.name}: held-out success{estimated} {rate} % {limits}{among}")
    return lines


MOST_COLUMNS = 6
"""Largest number of numeric columns in the short table."""


def _whole(board: Leaderboard) -> Table:
    return replace(_with_verification(table_of(board), board), notes=())


def _brief(board: Leaderboard) -> Table:
    """Return a table without intervals. If it has more than `MOST_COLUMNS` columns, keep only one measure."""
    table = _whole(board)
    rows = (
        replace(row, cells={key: replace(cell, ci95=None) for key, cell in row.cells.items()})
        for row in table.rows
    )
    table = replace(table, rows=tuple(rows)).without_empty()
    if len(table.columns) <= MOST_COLUMNS:
        return table
    measures = {part.first: part for part in table.by_name()}
    sorted_by = (board.sorted_by or "").rpartition("_")[2]
    return measures.get(board.measures.get(sorted_by, ""), next(iter(measures.values())))


def print_leaderboard(console: Console, board: Leaderboard, *, verbose: bool = False) -> None:
    """Print the leaderboard. `verbose`: all measures, and the intervals of own runs."""
    for answer in answers(board) if board.held_out else ():
        console.print(line(answer, "bold"))
    if board.standings:
        # `explain=False`, because the first note below the table explains the mark of the user's runs.
        print_table(console, _whole(board) if verbose else _brief(board), explain=False, gap=verbose)
    notes = footnotes(board, derived=False)
    if {standing.ours for standing in board.standings} == {True, False}:
        notes.insert(0, f"{OURS} an own run" + ("" if verbose else "; intervals and all measures: --verbose"))
    for note in notes:
        remark(console, note)


def text_leaderboard(board: Leaderboard, *, verbose: bool = False) -> str:
    """Return the output of `print_leaderboard` in 80 columns."""
    return text_of(lambda console: print_leaderboard(console, board, verbose=verbose))


def flat_table(board: Leaderboard) -> Table:
    """Return the leaderboard as one table for Markdown and LaTeX, with verification and intervals in its cells."""
    table = _with_verification(table_of(board), board)
    rows = []
    for row, standing in zip(table.rows, board.standings, strict=True):
        cells = {column.key: _with_derived(row, standing, column) for column in table.columns}
        rows.append(replace(row, cells=cells))
    return replace(table, rows=tuple(rows))


def _with_derived(row: Row, standing: Standing, column: Column) -> Cell:
    """Return the cell. To a published held-out score, add the interval that is derived from the printed rates."""
    cell, limits = row.cell(column), standing.ci95.get(column.key)
    if standing.ours or limits is None or not column.key.startswith(HELD_OUT):
        return cell
    return replace(cell, ci95=(100 * limits[0], 100 * limits[1]))
