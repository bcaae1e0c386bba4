"""Figure 1: methods on each family, as bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evalharness.results.curves import Row as Point
from evalharness.results.paper import table1
from evalharness.results.paper.exhibit import Exhibit, Filled
from evalharness.results.paper.given import Given
from evalharness.results.paper.standings import Leaderboard
from evalharness.results.paper.table import Table
from evalharness.results.report import plots

TITLE = "figure 1: success and progress of each family"
_SERIES = "LLaMA-3-8B"
"""The base model that the paper compares methods on."""


def points_of(board: Leaderboard, labels: Mapping[int, str]) -> Iterator[Point]:
    """Success and progress of each row of a leaderboard; `labels`: position of a row -> what the plot calls it."""
    for i, standing in enumerate(board.standings):
        if i not in labels:
            continue
        for column in board.columns:
            value = standing.values.get(column)
            if value is None:
                continue
            family, _, measure = column.rpartition("_")
            low, high = standing.ci95.get(column, (None, None))
            yield {
                "run": labels[i],
                "source": "run" if standing.ours else "published",
                "family": family,
                "measure": measure,
                "held_in": board.is_held_in(standing, column),
                "incomplete": standing.is_incomplete(column),
                "rate": value,
                "ci95_low": low,
                "ci95_high": high,
            }


def _points(table: Table) -> list[dict[str, Any]]:
    points = []
    for row in table.rows:
        for column in table.columns:
            cell = row.cell(column)
            if cell.value is not None:
                family, _, measure = column.key.rpartition("_")
                low, high = (end / 100 for end in cell.ci95) if cell.ci95 and row.ours else (None, None)
                points.append(
                    {
                        "run": row.name + row.marks,
                        "source": "run" if row.ours else "published",
                        "family": family,
                        "measure": measure,
                        "held_in": column.key in row.underlined,
                        "incomplete": "\u2020" in cell.marks,
                        "rate": cell.value / 100,
                        "ci95_low": low,
                        "ci95_high": high,
                    }
                )
    return points


def _fill(given: Given) -> Filled:
    filled = table1.EXHIBIT.fill(given)
    whole = filled.tables[0]
    rows = tuple(row for row in whole.rows if row.ours or row.group in (_SERIES, "other papers"))
    notes = ("the published numbers are those of table 1, LLaMA-3-8B", *whole.notes)
    table = Table(TITLE, whole.columns, rows, "%", notes)
    titles = {spec.family: spec.title for spec in given.specs.values()}
    return Filled(
        (table, *filled.tables[1:]), filled.missing, lambda: plots.draw_families(_points(table), titles)
    )


EXHIBIT = Exhibit(
    "figure1",
    TITLE,
    "the rows of table 1 with LLaMA-3-8B as bars",
    table1.EXHIBIT.command,
    table1.EXHIBIT.takes,
    _fill,
)
