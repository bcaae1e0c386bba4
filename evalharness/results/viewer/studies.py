"""Studies as the page shows them: a training's held-out curve, Best-of-N. Numbers and texts, which the page escapes."""

from __future__ import annotations

from typing import Any

from evalharness.results.best_of_n import BestOfN
from evalharness.results.checkpoints import Training
from evalharness.results.curves import CURVE_NAMES
from evalharness.results.report.best_of_n import best_table, shown_ks
from evalharness.results.tabular.markup import table_for_page
from evalharness.results.tabular.table import Cell, Column, Row, Table, percent_cell


def training_for_page(training: Training) -> dict[str, Any]:
    columns = [training.score, *(column for column in training.points[0].rates if column != training.score)]
    return {
        "model": training.model,
        "axis": training.axis,
        "suite": training.suite,
        "columns": [[column, training.titles.get(column, column)] for column in columns],
        "reward_title": training.titles["reward"],
        "rewards": list(training.rewards.items()),
        "points": [
            {
                "name": point.name,
                "x": point.x,
                "n": point.n,
                "rates": point.rates,
                "ci95": point.ci95,
                "reward": point.training_reward,
            }
            for point in training.points
        ],
        "notes": list(training.notes),
    }


def best_of_n_for_page(study: BestOfN) -> dict[str, Any]:
    return {
        "question": f"How much better is the best of {study.samples} attempts of {study.model} than a greedy one?",
        "tables": [table_for_page(table) for table in (best_table(study), _by_k(study))],
        "notes": list(study.notes),
    }


def _by_k(study: BestOfN) -> Table:
    """The curves with their intervals, for which a terminal has no room."""
    columns = tuple(Column(str(k), f"k = {k}") for k in shown_ks(study.samples))
    found: dict[str, dict[str, dict[str, Cell]]] = {curve: {} for curve in CURVE_NAMES}
    for row in study.curves:
        cell = percent_cell(row["rate"], (row["ci95_low"], row["ci95_high"]))
        found[row["curve"]].setdefault(row["family"], {})[str(row["k"])] = cell
    rows = (
        Row(study.titles[family], cells, CURVE_NAMES[curve], "run")
        for curve, families in found.items()
        for family, cells in sorted(families.items())
    )
    return Table("by the number of attempts", columns, tuple(rows))
