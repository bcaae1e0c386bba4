"""Convert a row of a leaderboard to a row of a table. Symbols after a number mark numbers that are not comparable."""

from __future__ import annotations

from evalharness.results.leaderboard.standings import Leaderboard, Standing
from evalharness.results.score import MEASURES
from evalharness.results.tabular.table import Column, Row, percent_cell

DIFFERS = "\u2021"
OWN_LABELS = "#"
PART = "\u2020"
ESTIMATE = "\u2248"
MARKS = {
    "*": "* the method's training data was sampled from this family",
    OWN_LABELS: f"{OWN_LABELS} our subgoal labels or changed tasks: this and the held-out score are not comparable",
    PART: f"{PART} only a part of the family was played",
    ESTIMATE: f"{ESTIMATE} estimated from the tasks of --subset",
    DIFFERS: f"{DIFFERS} other protocol than the published rows; see the row's note below",
}
"""Symbol that marks a number -> text that explains the symbol below the table."""


def columns_of(board: Leaderboard) -> tuple[Column, ...]:
    return tuple(
        Column(f"{family}_{measure}", board.measures[measure], board.titles.get(family, "held-out"))
        for family in board.groups
        for measure in MEASURES
    )


def marks_of(board: Leaderboard, standing: Standing, column: str) -> str:
    """Return the symbols that mark a number. Numbers of held-in families are marked by `Row.underlined` instead."""
    if standing.values.get(column) is None:
        return ""
    return (
        (OWN_LABELS if standing.has_own_labels(column) else "")
        + (ESTIMATE if standing.is_estimated(column) else PART if standing.is_incomplete(column) else "")
        + (DIFFERS if standing.deviations else "")
    )


def row_of(
    board: Leaderboard,
    standing: Standing,
    marks: str = "",
    about: tuple[str, ...] = (),
    *,
    derived: bool = False,
) -> Row:
    """Convert a row of a leaderboard to a row of a table. `derived`: add the intervals of published rows."""
    cells = {
        column: percent_cell(
            standing.values.get(column),
            standing.ci95.get(column) if standing.ours or derived else None,
            marks_of(board, standing, column),
        )
        for column in board.columns
    }
    held_in = frozenset(column for column in board.columns if board.is_held_in(standing, column))
    return Row(standing.name, cells, standing.series, standing.source, marks, about, standing.folder, held_in)
