"""Curves of success and progress over a number in the runs' labels, such as the size of the training set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evalharness.base.errors import UserError
from evalharness.base.paths import real_path
from evalharness.paper.exhibit import Filled, Given, join_entry, plain
from evalharness.paper.family_table import differences, empty_board, legend, make_run_rows, protocol_lines
from evalharness.paper.x_values import number
from evalharness.results.curves import Row as Point
from evalharness.results.curves import curve_point, rate_row
from evalharness.results.figures import plots
from evalharness.results.leaderboard.marked_rows import columns_of, row_of
from evalharness.results.leaderboard.standing_rows import Benchmark, make_published_row
from evalharness.results.published import MAIN, load_table
from evalharness.results.score import HELD_OUT, MEASURES
from evalharness.results.scored_run import ScoredRun
from evalharness.results.tabular.table import Column, Row, Table
from evalharness.results.trainings import interval_of
from evalharness.stats import Interval

PUBLISHED = "AgentRefine (published)"


@dataclass(frozen=True)
class PublishedPoint:
    """A row of a published table, which is the curve's point at `x`."""

    x: float
    table: str
    names: Mapping[str, str]


def runs_at(given: Given, key: str) -> list[tuple[str, ScoredRun, str | None]]:
    """Return (label, run, x value as text) of each run. Without `--x`, only entries with the label `key` are used."""
    key, values = given.x or (key, {})
    chosen = plain(given, None if given.x else key)
    return [
        (label, run, _find_place(values, run) if values else entry.setting(key))
        for entry in chosen.entries
        for label, run in join_entry(entry)
    ]


def _find_place(values: Mapping[str, float], run: ScoredRun) -> str | None:
    value = values.get(real_path(run.folder).name)
    return None if value is None else str(value)


def rate_over_x(axis: str, runs: Sequence[tuple[str, float, str, ScoredRun]]) -> Iterator[Point]:
    """Yield points: success and progress of each family and held-out. `runs` has (series, x, label, run)."""
    for series, x, label, run in sorted(runs, key=lambda item: item[:3]):
        rates: dict[tuple[str, str], tuple[float, Interval]] = {}
        for family, tasks in sorted(run.family_tasks.items()):
            for measure in MEASURES:
                row = rate_row([getattr(task, measure) for task in tasks], measure=measure)
                rates[family, measure] = row["rate"], (row["ci95_low"], row["ci95_high"])
        for measure in MEASURES if (held := run.held_out[0]) else ():
            rates[HELD_OUT, measure] = getattr(held, f"{measure}_rate"), getattr(held, f"{measure}_rate_ci95")
        for (family, measure), (rate, ends) in rates.items():
            ends = interval_of(run, family, measure, rate, ends)
            yield curve_point(series, label, axis, x, family, measure, rate, ends)


def fill(given: Given, key: str, title: str, published: Sequence[PublishedPoint], note: str) -> Filled:
    """Fill the figure. `key` is the runs' label with the x value."""
    benchmark = Benchmark.of(given.specs)
    board = empty_board(benchmark, load_table(MAIN))
    rows: list[Row] = []
    points: list[Point] = []
    if given.x and given.x[0] != key:
        key, published = given.x[0], ()  # the published points are only valid for the default axis
    for point in published:
        [printed] = [row for row in load_table(point.table) if point.names.items() <= dict(row.names).items()]
        row = row_of(board, make_published_row(printed, benchmark))
        rows.append(Row(f"{point.x:,.0f}", row.cells, "published"))
        points += _make_points(row, board.columns, key, point.x)
    runs, problems = runs_at(given, key), []
    standing: list[tuple[float, str, ScoredRun]] = []
    for label, run, value in runs:
        if value is None:
            problems.append(f"{label}: nothing says its {key}; label it with --label {key}=N")
            continue
        try:
            x = number(value, f"{label}: {key}")
        except UserError as error:
            problems.append(str(error))
            continue
        standing.append((x, label, run))
    # Make the points of all runs in one call, which sorts them by series and x: lines are drawn in this order.
    points += rate_over_x(
        key, [(run.labels.get("series", "") or "ours", x, label, run) for x, label, run in standing]
    )
    standing.sort(key=lambda each: each[:2])
    named = [(label if label == f"{x:g}" else f"{x:g}: {label}", run) for x, label, run in standing]
    rows += [replace(row, group="ours") for row in make_run_rows(board, named, benchmark)]
    columns = columns_of(board)
    paired, why = differences(named, columns)
    notes = (note, *legend(rows), *protocol_lines(rows))
    titles = {**board.titles, "held_out": "held-out"}
    draw = (lambda: plots.draw_over(points, titles)) if points else None
    return Filled(
        (Table(title, columns, tuple(rows), key, notes), *paired), (*given.left_out, *problems, *why), draw
    )


def _make_points(row: Row, columns: Sequence[str], axis: str, x: float) -> list[Point]:
    points = []
    for column in columns:
        family, _, measure = column.rpartition("_")
        value = row.cell(Column(column, measure)).value
        if value is not None:
            rate = value / 100
            points.append(curve_point(PUBLISHED, row.name, axis, x, family, measure, rate, (rate, rate)))
    return points
