"""The checkpoints of a training run, for a terminal 80 columns wide."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.base.terminal import plain_table, remark
from evalharness.base.text import printable
from evalharness.results.checkpoints import Point, Training
from evalharness.results.html.document import percent
from evalharness.results.report.answers import p_value
from evalharness.results.report.comparison import holm_line, print_head
from evalharness.results.score import MEASURES


def scores_table(training: Training) -> Table:
    """The score that counts, by step."""
    table = plain_table("", training.axis, "n")
    for measure in MEASURES:
        table.add_column(f"{measure} % [95 % CI]", no_wrap=True)
    for point in training.points:
        cells = [_with_interval(point, training.score, measure) for measure in MEASURES]
        style = "bold" if point.name == training.best else None
        mark = " *" if point.name == training.best else ""
        table.add_row(_name(point) + mark, f"{point.x:.15g}", str(point.n), *cells, style=style)
    return table


def _name(point: Point) -> str:
    return printable(point.name, single_line=True)


def _with_interval(point: Point, column: str, measure: str) -> str:
    low, high = point.ci95[column][measure]
    return f"{percent(point.rates[column][measure]):>5} [{percent(low)}, {percent(high)}]"


def families_table(training: Training) -> Table:
    """Each family's rate of the measure that the best is chosen by."""
    families = [column for column in training.points[0].rates if column != training.score]
    table = plain_table(f"{training.by} %", *(printable(training.titles.get(f, f)) for f in families))
    for point in training.points:
        cells = [percent(point.rates.get(family, {}).get(training.by)) for family in families]
        table.add_row(_name(point), *cells)
    return table


def tests_table(training: Training) -> Table:
    """Every checkpoint against the first; without rows if there is one checkpoint."""
    table = plain_table("", "n", "against the first [95 % CI]", "p", "Holm", "w/t/l")
    for measure in MEASURES:
        found = [
            (point, test)
            for point in training.points
            if (test := point.against_first.get(measure)) is not None
        ]
        if found:
            table.add_row(Text(f"{measure} %", style="bold"))
        for point, test in found:
            style = "bold" if test.p_holm < 0.05 else None
            cells = (str(test.n), test.points, p_value(test.p), p_value(test.p_holm), test.tally)
            table.add_row(f"  {_name(point)}", *cells, style=style)
    return table


def winner_lines(training: Training) -> list[str]:
    """Which one is best, and what its lead is worth."""
    winner, chance = training.winner, training.chance
    shown = _with_interval(winner, training.score, training.by).strip()
    where = "" if training.selected_on == training.suite else f", chosen on suite {training.selected_on}"
    lines = [f"best by {training.by}: {printable(winner.name, single_line=True)}, {shown} %{where}"]
    if chance is not None:
        k = training.chosen_among
        lines.append(
            f"it leads the mean of all {k} by {100 * chance.lead:.1f} points; the best of {k} equally good ones would "
            f"lead by {100 * chance.expected:.1f} by chance alone (up to {100 * chance.high:.1f} in 95 of 100 cases; "
            f"p {p_value(chance.p)})"
        )
    if training.selected_on == training.suite and len(training.points) > 1:
        lines.append(
            "chosen by the same scores that are shown: its score is biased upwards, and so are tests against it; "
            "--select-on open:SEED chooses on other tasks"
        )
    return lines


def print_training(console: Console, training: Training) -> None:
    column = training.titles.get(training.score, training.score)
    count = len(training.points)
    many = "1 checkpoint" if count == 1 else f"{count} checkpoints"
    about = f"suite {training.suite}, at most {training.max_turns} turns"
    print_head(console, f"{training.model}: {many}, {column}", about, training.notes)
    console.print(scores_table(training))
    if len(training.points[0].rates) > 2:
        console.print()
        console.print(families_table(training))
    if len(training.points) > 1:
        console.print()
        console.print(tests_table(training))
    console.print()
    for line in winner_lines(training):
        console.print(Text(line))
    if len(training.points) > 1:
        remark(
            console,
            f"Tests are paired by task. {holm_line(column, len(training.points) - 1, 0)}; bold where below 0.05. "
            "w/t/l: tasks won, tied, lost.",
        )
