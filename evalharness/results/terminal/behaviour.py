"""Print behaviour figures in 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from evalharness.base.terminal import plain_table, remark
from evalharness.base.text import printable
from evalharness.results.behaviour.figures import FIGURES, Figure
from evalharness.results.behaviour.rows import ALL, BehaviourRow, DifferenceRow, RunBehaviour
from evalharness.results.run_labels import labels_of, letter

_BY_NAME = {figure.name: figure for figure in FIGURES}


def figure_value(figure: Figure, value: float) -> str:
    """Return the value of a figure as text: a share in percent, a mean with one decimal."""
    return f"{100 * value:.1f}" if figure.share else f"{value:.1f}"


def _interval(figure: Figure, low: float, high: float) -> str:
    return f"[{figure_value(figure, low)},{figure_value(figure, high)}]"


def _head(console: Console, name: str, run: RunBehaviour) -> None:
    text = f"{printable(name, single_line=True)}  {printable(str(run.folder), single_line=True)}"
    console.print(Text(text, style="bold"), soft_wrap=True)


def print_behaviour(console: Console, run: RunBehaviour, rows: Sequence[BehaviourRow]) -> None:
    """Print each figure over all families with its interval, and its value in each family."""
    values = {(row.family, row.figure): row for row in rows}
    families = list(dict.fromkeys(row.family for row in rows))
    titles = run.manifest.titles
    first = families[0]
    _head(console, run.name, run)
    others = [family for family in families if family != first]
    table = plain_table(
        "",
        "all" if first == ALL else titles.get(first, first),
        "95 % CI",
        # Short titles, so that a table with five families fits into 80 characters.
        *(run.short_title(family) for family in others),
    )
    if not others:
        table.add_column("n", justify="right", no_wrap=True)
        table.add_column("of", no_wrap=True)
    for figure in FIGURES:
        row = values.get((first, figure.name))
        if row is None:
            continue
        cells = [figure.title, figure_value(figure, row.value), _interval(figure, row.low, row.high)]
        for family in others:
            other = values.get((family, figure.name))
            cells.append("-" if other is None else _brief(figure, other.value))
        if not others:
            cells += [str(row.n), figure.per]
        table.add_row(*cells)
    console.print(table)
    count = sum(row.family == first for row in rows)
    each = f", {len(rows)} with those of each family" if others else ""
    remark(console, f"{count} figures{each}: {describe_intervals(len(rows))}.")
    _foot(console)


def describe_intervals(count: int) -> str:
    """Return the warning that the intervals are not corrected for multiple comparisons."""
    missed = f"about {0.05 * count:.0f}" if count >= 20 else "one in 20"
    return f"intervals are not corrected for the number of figures; expect {missed} to miss the true value by chance"


def _brief(figure: Figure, value: float) -> str:
    return f"{100 * value:.0f}" if figure.share else f"{value:.1f}"


def print_runs(console: Console, runs: Sequence[RunBehaviour]) -> None:
    """Print the letter, the label and the folder of each run."""
    for number, (label, run) in enumerate(zip(labels_of(runs), runs, strict=True)):
        _head(console, f"{letter(number)}  {label}", run)


def print_differences(
    console: Console, runs: Sequence[RunBehaviour], number: int, rows: Sequence[DifferenceRow]
) -> None:
    """Print the differences between run `number` and the first run. A row is bold if its interval excludes 0."""
    a, b = letter(0), letter(number)
    family = rows[0].family if rows else ALL
    chosen = [row for row in rows if row.family == family]
    count = chosen[0].n if chosen else 0
    where = "all families" if family == ALL else family
    remark(console, f"{b} against {a}: {where}, {count} tasks that both have played, paired by task")
    table = plain_table("", a, b, f"{b} - {a}", "95 % CI")
    for row in chosen:
        figure = _BY_NAME[row.figure]
        signed = f"{100 * row.difference:+.1f}" if figure.share else f"{row.difference:+.1f}"
        table.add_row(
            figure.title,
            figure_value(figure, row.baseline),
            figure_value(figure, row.run),
            signed,
            _interval(figure, row.low, row.high),
            style="bold" if row.low > 0 or row.high < 0 else None,
        )
    console.print(table)
    remark(
        console, f"Bold: the interval excludes 0. {len(chosen)} figures: {describe_intervals(len(chosen))}."
    )
    _foot(console)


def _foot(console: Console) -> None:
    remark(
        console,
        "Shares in %; intervals over tasks. Error turn: the environment did nothing. "
        "Formulas: docs/behaviour.md",
    )
