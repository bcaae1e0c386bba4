"""Figures that stand in sentences of the paper: what its own tables give for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from evalharness.results.paper.published import MAIN, Printed, PublishedRow
from evalharness.results.score import MEASURES

CLAIMS = "text_claims"
_NEARLY = 5.0
"""`nearly` and `about` allow that much."""
_ROUNDED = 0.1
"""A difference of two printed rates may be off by this."""

Values = Mapping[str, float]
Tables = Callable[..., Values]
"""(table, method, further names) -> the numbers of that row."""


def _drop(tables: Tables, method: str, columns: Sequence[str]) -> list[float]:
    """Percent of its value that each column loses against the whole training."""
    whole, part = tables("ablation", "AgentRefine (8000 data)"), tables("ablation", method)
    return [100 * (whole[column] - part[column]) / whole[column] for column in columns]


def _fall(tables: Tables, method: str, column: str = "p1") -> list[float]:
    row = tables("perturbation", method)
    return [row["alfworld_success"] - row[f"{column}_success"]]


def _gain(tables: Tables) -> list[float]:
    row = tables("best_of_n", "AgentRefine", decoding="delta")
    return [fmean(value for column, value in row.items() if column.endswith(measure)) for measure in MEASURES]


_SCIWORLD = [f"sciworld_{measure}" for measure in MEASURES]
_FROM_TABLES: Mapping[str, Callable[[Tables], list[float]]] = {
    "AgentRefine leads": lambda tables: [
        tables(MAIN, "AgentRefine", series="LLaMA-3-8B")["sciworld_success"]
        - tables(MAIN, "Agent-FLAN", series="LLaMA-3-8B")["sciworld_success"]
    ],
    "without the refinement's loss": lambda tables: _drop(tables, "w/o refinement loss", _SCIWORLD),
    "with the loss of erroneous turns": lambda tables: _drop(tables, "w erroneous loss", _SCIWORLD),
    "under perturbation 1 AgentGym": lambda tables: _fall(tables, "AgentGym"),
    "under perturbation 1 Agent-FLAN": lambda tables: _fall(tables, "Agent-FLAN"),
    "on average over all columns AgentGym": lambda tables: _fall(tables, "AgentGym", "average"),
    "on average over all columns Agent-FLAN": lambda tables: _fall(tables, "Agent-FLAN", "average"),
    "Best-of-N gains": _gain,
}
"""Beginning of a claim -> what the tables give: one value, or one for success and one for progress."""


def claim_problem(claim: PublishedRow, rows: Sequence[PublishedRow]) -> str | None:
    """What the tables give where it is not what is claimed; None where it is, or where no table speaks of it."""

    def numbers(table: str, method: str, **names: str) -> Values:
        wanted = {"method": method, **names}
        row = next(row for row in rows if row.table == table and wanted.items() <= dict(row.names).items())
        return {column: printed.value for column, printed in row.numbers.items()}

    for beginning, compute in _FROM_TABLES.items():
        if claim.label.startswith(beginning):
            found = compute(numbers)
            if any(_holds(value, claim.numbers["value"], claim.names["relation"]) for value in found):
                return None
            return "the tables give " + " and ".join(f"{value:.1f}" for value in found)
    return None


def _holds(value: float, claimed: Printed, relation: str) -> bool:
    if relation == "above":
        return value > claimed.value
    tolerance = _NEARLY if relation == "nearly" else 10.0**-claimed.decimals / 2 + _ROUNDED
    return abs(value - claimed.value) <= tolerance
