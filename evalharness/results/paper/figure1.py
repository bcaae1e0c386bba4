"""Figure 1: methods on each family, as bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evalharness.results.curves import Row as Point
from evalharness.results.paper.exhibit import Exhibit, Filled
from evalharness.results.paper.family_exhibits import TABLE1
from evalharness.results.paper.family_table import OWN_LABELS, PART
from evalharness.results.paper.given import Given
from evalharness.results.paper.table import Column, Row, Table
from evalharness.results.report import plots

TITLE = "figure 1: success and progress of each family"
_SERIES = "LLaMA-3-8B"
"""The base model that the paper compares methods on."""


def points(rows: Iterable[Row], columns: Sequence[Column]) -> list[Point]:
    """Success and progress of each row, fractions 0..1."""
    found = []
    for row in rows:
        for column in columns:
            cell = row.cell(column)
            if cell.value is not None:
                family, _, measure = column.key.rpartition("_")
                low, high = (round(end / 100, 9) for end in cell.ci95) if cell.ci95 else (None, None)
                found.append(
                    {
                        "run": row.name + row.marks,
                        "source": "run" if row.ours else "published",
                        "family": family,
                        "measure": measure,
                        "held_in": column.key in row.underlined,
                        "incomplete": PART in cell.marks,
                        "own_labels": OWN_LABELS in cell.marks,
                        "rate": round(cell.value / 100, 9),
                        "ci95_low": low,
                        "ci95_high": high,
                    }
                )
    return found


def _fill(given: Given) -> Filled:
    filled = TABLE1.fill(given)
    whole = filled.tables[0]
    rows = tuple(row for row in whole.rows if row.ours or row.group in (_SERIES, "other papers"))
    notes = ("the published numbers are those of table 1, LLaMA-3-8B", *whole.notes)
    table = Table(TITLE, whole.columns, rows, "%", notes)
    titles = {spec.family: spec.title for spec in given.specs.values()}
    return Filled(
        (table, *filled.tables[1:]),
        filled.missing,
        lambda: plots.draw_families(points(rows, whole.columns), titles),
    )


EXHIBIT = Exhibit(
    "figure1",
    TITLE,
    "the rows of table 1 with LLaMA-3-8B as bars",
    TABLE1.command,
    TABLE1.takes,
    _fill,
)
