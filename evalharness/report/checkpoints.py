"""The checkpoints of a training run, for a terminal 80 columns wide."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.analysis.checkpoints import Point, Training
from evalharness.analysis.difference import MEASURES, Difference
from evalharness.report.comparison import p_value
from evalharness.report.study_table import percent, plain_table
from evalharness.report.text import printable


def scores_table(training: Training) -> Table:
    """The score that counts, by step."""
    table = plain_table("", training.axis, "n")
    for measure in MEASURES:
        table.add_column(f"{measure} % [95 % CI]", no_wrap=True)
    for point in training.points:
        cells = [_with_interval(point, training.score, measure) for measure in MEASURES]
        style = "bold" if point.name == training.best else None
        mark = " *" if point.name == training.best else ""
        table.add_row(_name(point) + mark, f"{point.x:g}", str(point.n), *cells, style=style)
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
    table = plain_table("", "against the first [95 % CI]", "p", "Holm", "against the best", "p", "Holm")
    for measure in MEASURES:
        table.add_row(Text(f"{measure} %", style="bold"))
        for point in training.points:
            first, best = point.against_first.get(measure), point.against_best.get(measure)
            if first or best:
                table.add_row(f"  {_name(point)}", *_cells(first, interval=True), *_cells(best))
    return table


def _cells(found: Difference | None, *, interval: bool = False) -> list[str | Text]:
    if found is None:
        return ["", "", ""]
    low, high = (100 * end for end in found.ci95)
    text = f"{100 * found.difference:+.1f}" + (f" [{low:.1f}, {high:.1f}]" if interval else "")
    style = "bold" if found.p_holm < 0.05 else ""
    return [Text(text, style=style), p_value(found.p), Text(p_value(found.p_holm), style=style)]


def winner_lines(training: Training) -> list[str]:
    """Which one is best, and what its lead is worth."""
    winner, chance = training.winner, training.chance
    shown = _with_interval(winner, training.score, training.by).strip()
    where = "" if training.selected_on == training.suite else f", chosen on suite {training.selected_on}"
    lines = [f"best by {training.by}: {printable(winner.name, single_line=True)}, {shown} %{where}"]
    if chance is not None:
        k = len(training.points)
        lines.append(
            f"it leads the mean of all {k} by {100 * chance.lead:.1f} points; the best of {k} equally good ones would "
            f"lead by {100 * chance.expected:.1f} by chance alone (up to {100 * chance.high:.1f} in 95 of 100 cases; "
            f"p {p_value(chance.p)})"
        )
    if training.selected_on == training.suite and len(training.points) > 1:
        lines.append(
            "chosen by the same scores that are shown: its score is optimistic, and so are tests against it; "
            "--select-on open:SEED chooses on other tasks"
        )
    return lines


def print_training(console: Console, training: Training) -> None:
    name = printable(training.model, single_line=True)
    column = training.titles.get(training.score, training.score)
    console.print(Text(f"{name}: {len(training.points)} checkpoints, {column}", style="bold"), soft_wrap=True)
    console.print(Text(f"suite {training.suite}, at most {training.max_turns} turns"), style="dim")
    for note in training.notes:
        console.print(Text(printable(note, single_line=True)), style="yellow")
    console.print()
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
    tests = sum(len(p.against_first) + len(p.against_best) for p in training.points)
    if tests:
        console.print(
            Text(f"paired by task; Holm: adjusted over the {tests} tests; bold where below 0.05"), style="dim"
        )
