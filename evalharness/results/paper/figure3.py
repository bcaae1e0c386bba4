"""Figure 3: success without and with perturbations, as slopes."""

from __future__ import annotations

from typing import Any

from evalharness.results.curves import UNPERTURBED
from evalharness.results.paper import table3
from evalharness.results.paper.exhibit import Exhibit, Filled
from evalharness.results.paper.given import Given
from evalharness.results.paper.table import Table
from evalharness.results.report import plots

TITLE = "figure 3: success without and with each perturbation"


def _points(table: Table, family: str, names: list[str]) -> list[dict[str, Any]]:
    points = []
    for row in table.rows:
        for column in table.columns:
            key, _, measure = column.key.rpartition("_")
            cell = row.cell(column)
            low, high = (end / 100 for end in cell.ci95) if cell.ci95 else (None, None)
            if column.group in names and cell.value is not None:
                perturbation = UNPERTURBED if key == family else column.group
                points.append(
                    {
                        "run": f"{row.name} {'(ours)' if row.ours else '(published)'}",
                        "family": family,
                        "perturbation": perturbation,
                        "measure": measure,
                        "rate": cell.value / 100,
                        "ci95_low": low,
                        "ci95_high": high,
                    }
                )
    return points


def _fill(given: Given) -> Filled:
    filled = table3.EXHIBIT.fill(given)
    whole = filled.tables[0]
    spec = table3.perturbed_family(given.specs)
    groups = [g for g in whole.groups if not g.startswith(("Average", "Std", "Avg"))]
    columns = tuple(c for c in whole.columns if c.group in groups and c.name == "success")
    notes = ("the published numbers are those of table 3", *whole.notes[1:])
    table = Table(TITLE, columns, whole.rows, "%", notes)
    points = _points(table, spec.family, groups)
    titles = {spec.family: spec.title}
    return Filled(
        (table, *filled.tables[1:]), filled.missing, lambda: plots.draw_perturbations(points, titles)
    )


EXHIBIT = Exhibit(
    "figure3",
    TITLE,
    "how far success falls where actions are worded otherwise",
    table3.EXHIBIT.command,
    table3.EXHIBIT.takes,
    _fill,
    table3.EXHIBIT.needs,
)
