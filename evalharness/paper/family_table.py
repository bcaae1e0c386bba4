"""Make tables of success and progress by family: published rows, then the user's runs, with marks and intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from evalharness.paper.exhibit import Filled, Given, join_entry
from evalharness.paper.protocol import describe_aspects, differ, list_aspects
from evalharness.results.comparison import comparable_groups, compare_runs
from evalharness.results.difference import Difference
from evalharness.results.leaderboard.marked_rows import DIFFERS, MARKS, columns_of, row_of
from evalharness.results.leaderboard.standing_rows import Benchmark, make_published_row, make_run_row
from evalharness.results.leaderboard.standings import Leaderboard
from evalharness.results.published import OTHERS, PublishedRow, family_columns, load_table
from evalharness.results.score import ESTIMATED, MEASURES, POOLED
from evalharness.results.scored_run import ScoredRun
from evalharness.results.tabular.table import Cell, Column, Row, Table, percent_cell
from evalharness.results.trainings import trainings_line


def legend(table: Sequence[Row]) -> list[str]:
    """Return the meanings of the marks in these rows."""
    used = {mark for row in table for cell in row.cells.values() for mark in cell.marks}
    used |= {mark for row in table for mark in row.marks} | (
        {"*"} if any(r.underlined for r in table) else set()
    )
    return [meaning for mark, meaning in MARKS.items() if mark in used]


def protocol_lines(rows: Sequence[Row]) -> list[str]:
    """Return a line for the protocol of each of the user's runs, and for each protocol of other papers."""
    ours = [f"{row.name}: {'; '.join(row.about)}" for row in rows if row.ours and row.about]
    others = dict.fromkeys("; ".join(row.about) for row in rows if row.source == "other")
    return ours + [f"other papers, not AgentRefine's protocol, in no mean with it: {text}" for text in others]


def make_run_rows(
    board: Leaderboard, runs: Sequence[tuple[str, ScoredRun]], benchmark: Benchmark
) -> list[Row]:
    """Return a table row for each run, with a text about its protocol."""
    rows = []
    for label, run in runs:
        protocol = list_aspects(run, benchmark)
        marks = DIFFERS if differ(protocol) else ""
        standing = make_run_row(run, label, benchmark.prompts, ())
        about = (*describe_aspects(protocol), trainings_line(run))
        rows.append(row_of(board, standing, marks, tuple(filter(None, about))))
    return rows


def other_rows(board: Leaderboard) -> list[Row]:
    """Return rows of other papers. Their protocols differ, so the rows have no mean and no held-out score."""
    families = {title: family for family, title in board.titles.items()}
    rows: dict[tuple[str, str], Row] = {}
    for line in load_table(OTHERS):
        names = line.names
        row = rows.setdefault(
            (names["method"], names["model"]),
            Row(
                f"{names['model']} ({names['method']})", {}, "other papers", "other", DIFFERS,
                (names["protocol"], names["split"], names["source"]),
            ),
        )  # fmt: skip
        if names["family"] in families and names["measure"] in MEASURES:
            column = f"{families[names['family']]}_{names['measure']}"
            assert isinstance(row.cells, dict)
            row.cells[column] = Cell(line.numbers["percent"].value)
    return [row for row in rows.values() if row.cells]


def empty_board(benchmark: Benchmark, published: Sequence[PublishedRow]) -> Leaderboard:
    """Return a leaderboard without rows, with the columns of the published rows in their order."""
    families = list(benchmark.sizes) if benchmark.own else family_columns(published)
    return Leaderboard(
        titles={family: benchmark.titles.get(family, family) for family in families},
        standings=(),
        sorted_by=None,
        held_out=tuple(benchmark.held_out),
        measures=benchmark.measures,
    )


def differences(
    runs: Sequence[tuple[str, ScoredRun]], columns: Sequence[Column]
) -> tuple[list[Table], list[str]]:
    """Compare each run with the first of its comparable runs, paired by task. Return a table of differences (a list,
    empty without one), and the reasons why some runs are not compared."""
    groups, reasons = comparable_groups([run for _, run in runs])
    rows = []
    for group in groups:
        compared = compare_runs([runs[i][1] for i in group]) if len(group) > 1 else []
        for number, comparison in zip(group[1:], compared, strict=True):
            cells = {
                f"{d.family}_{d.measure}": difference_cell(d, comparison.baseline, comparison.run)
                for d in comparison.differences
            }
            rows.append(Row(f"{runs[number][0]} - {runs[group[0]][0]}", cells, source="difference"))
    why = [f"{runs[i][0]} is not paired: {text}" for i, text in reasons.items()]
    if not rows:
        return [], why
    signed = [replace(column, signed=True) for column in columns]
    names = {c.key.rpartition("_")[2]: c.name for c in columns}
    for total, title in ((ESTIMATED, "held-out, estimated"), (POOLED, "pooled")):
        if any(f"{total}_{measure}" in row.cells for row in rows for measure in MEASURES):
            signed += [
                Column(f"{total}_{m}", names.get(m, m), title, columns[0].decimals, True) for m in MEASURES
            ]
    return [
        Table(
            "differences between rows of ours", tuple(signed), tuple(rows), notes=("paired by task, points",)
        )
    ], why


def difference_cell(d: Difference, baseline: ScoredRun, run: ScoredRun) -> Cell:
    """Return a cell with the difference in points and its test."""
    cell = percent_cell(d.difference, d.ci95)
    return replace(cell, test=d, comparison=f"{baseline.folder}\n{run.folder}")


def labels_in(given: Given) -> list[str]:
    return [entry.label for entry in given.entries]


def fill(
    given: Given,
    table: str,
    title: str,
    benchmark: Benchmark | None = None,
    only: Callable[[ScoredRun], ScoredRun] = lambda run: run,
) -> Filled:
    """Fill a table. `table` names the file of published rows; `only` selects the part of a run that the table shows."""
    benchmark = benchmark or Benchmark.of(given.specs)
    published = load_table(table)
    board = empty_board(benchmark, published)
    rows = [row_of(board, make_published_row(row, benchmark)) for row in published]
    runs = [(label, only(run)) for entry in given.entries for label, run in join_entry(entry)]
    ours = make_run_rows(board, runs, benchmark)
    others = other_rows(board) if given.others else []
    listed = (*rows, *others, *ours)
    columns = columns_of(board)
    paired, why = differences(runs, columns)
    own_note = [benchmark.own.note] if benchmark.own and benchmark.own.note else []
    notes = [*own_note, *legend(listed), *protocol_lines(listed)]
    missing = [
        f"{label}: nothing of {', '.join(left)}"
        for label, run in runs
        if (left := [board.titles[f] for f in board.titles if f not in run.manifest.counts])
    ]
    return Filled(
        (Table(title, columns, listed, "%", tuple(notes)), *paired), (*given.left_out, *missing, *why)
    )
