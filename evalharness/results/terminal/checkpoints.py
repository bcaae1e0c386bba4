"""Print the checkpoints of a training run in 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.base.terminal import line, plain_table, remark
from evalharness.base.text import printable
from evalharness.results.checkpoints import Point, Training
from evalharness.results.html.document import percent
from evalharness.results.score import MEASURES
from evalharness.results.terminal.answers import p_value
from evalharness.results.terminal.comparison import holm_line


def scores_table(training: Training) -> Table:
    """Return the table of the main score (`training.score`) at each step."""
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
    """Return a table of each family's rate at each checkpoint, in the measure that selects the best checkpoint."""
    families = [column for column in training.points[0].rates if column != training.score]
    table = plain_table(f"{training.by} %", *(printable(training.titles.get(f, f)) for f in families))
    for point in training.points:
        cells = [percent(point.rates.get(family, {}).get(training.by)) for family in families]
        table.add_row(_name(point), *cells)
    return table


def tests_table(training: Training, measures: Sequence[str]) -> Table:
    """Return the tests of every checkpoint against the first; the table is empty if there is only one checkpoint."""
    table = plain_table("", "n", "against the first [95 % CI]", "p", "Holm", "w/t/l")
    for measure in measures:
        tests = [
            (point, test)
            for point in training.points
            if (test := point.against_first.get(measure)) is not None
        ]
        if tests:
            table.add_row(Text(f"{measure} %", style="bold"))
        for point, test in tests:
            style = "bold" if test.p_holm < 0.05 else None
            cells = (str(test.n), test.points, p_value(test.p), p_value(test.p_holm), test.tally)
            table.add_row(f"  {_name(point)}", *cells, style=style)
    return table


def winner_lines(training: Training) -> list[str]:
    """Return a line about the best checkpoint, and a line about the tasks on which it was selected."""
    winner, column = training.winner, training.titles.get(training.score, training.score)
    rate, _, limits = _with_interval(winner, training.score, training.by).strip().partition(" ")
    among = f", of {training.chosen_among}" if training.chosen_among > 1 else ""
    lines = [f"best by {training.by}{among}: {_name(winner)}, {column} {training.by} {rate} % {limits}"]
    if training.selected_on != training.suite:
        lines.append(f"selected on suite {training.selected_on}")
    elif len(training.points) > 1:
        lines.append(
            "selected on these tasks: its score is biased upwards; --select-on open:SEED selects on others"
        )
    return lines


def print_training(console: Console, training: Training, *, verbose: bool = False) -> None:
    """Print the checkpoints. `verbose`: print the tests of both success and progress, instead of only `training.by`."""
    answer, *others = winner_lines(training)
    count = len(training.points)
    many = "1 checkpoint" if count == 1 else f"{count} checkpoints"
    console.print(line(answer, "bold"))
    remark(console, f"{training.model}: {many}; suite {training.suite}, at most {training.max_turns} turns")
    for note in training.notes:
        console.print(line(note, "yellow"))
    for other in others:
        remark(console, other)
    console.print(scores_table(training))
    if len(training.points[0].rates) > 2:
        console.print(families_table(training))
    if count < 2:
        return
    console.print(tests_table(training, MEASURES if verbose else (training.by,)))
    column = training.titles.get(training.score, training.score)
    remark(
        console,
        f"Tests are paired by task. {holm_line(column, count - 1, 0)}; bold if below 0.05. "
        "w/t/l: tasks won, tied, lost." + ("" if verbose else " More: --verbose"),
    )
