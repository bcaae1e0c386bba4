"""A sweep over perturbations, for a terminal 80 columns wide."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.base.terminal import plain_table
from evalharness.base.text import printable
from evalharness.results.difference import Difference
from evalharness.results.html.document import percent
from evalharness.results.paper.table3 import sweep_table
from evalharness.results.paper.text import print_table
from evalharness.results.report.comparison import method, p_value
from evalharness.results.score import MEASURES
from evalharness.results.sweep import Column, Sweep


def first_average_line(sweep: Sweep) -> str:
    """The average of the paper's first version, beside that of the last one; "" where there is none."""
    if sweep.first_average is None:
        return ""
    rates = ", ".join(f"{measure} {percent(sweep.first_average[measure])}" for measure in MEASURES)
    return f"Average over {', '.join(sweep.first_average_of)} alone, as the paper's first version has it: {rates} %"


def _difference_row(column: Column, d: Difference) -> list[str]:
    low, high = (100 * end for end in d.ci95)
    return [
        f"  {column.name}",
        str(d.n),
        percent(d.run),
        f"{100 * d.difference:+.1f} [{low:.1f}, {high:.1f}]",
        p_value(d.p),
        p_value(d.p_holm),
        percent(column.retention.get(d.measure)),
        f"{d.wins}/{d.ties}/{d.losses}",
    ]


def differences_table(sweep: Sweep) -> Table:
    table = plain_table("", "n", "rate", "difference [95 % CI]", "p", "Holm", "kept %", "w/t/l")
    for measure in MEASURES:
        plain = percent(sweep.columns[0].rates[measure])
        table.add_row(Text(f"{measure} %", style="bold"), "", plain)
        for column in sweep.columns[1:]:
            if (found := column.differences.get(measure)) is not None:
                style = "bold" if found.p_holm < 0.05 else None
                table.add_row(*_difference_row(column, found), style=style)
            if (alone := column.touched_differences.get(measure)) is not None:
                table.add_row(*_touched_row(alone))
    return table


def _touched_row(d: Difference) -> list[str]:
    low, high = (100 * end for end in d.ci95)
    kept = percent(d.run / d.baseline) if d.baseline else "-"
    return [
        "    touched",
        str(d.n),
        percent(d.run),
        f"{100 * d.difference:+.1f} [{low:.1f}, {high:.1f}]",
        "",
        "",
        kept,
        f"{d.wins}/{d.ties}/{d.losses}",
    ]


def touched_line(sweep: Sweep) -> str | None:
    """How many tasks each perturbation touches; None where it was not looked at."""
    known = [column for column in sweep.columns if column.touched is not None]
    if not known:
        return None
    counts = ", ".join(f"{column.name} {column.touched} ({column.actions})" for column in known)
    return (
        f"touched, of {sweep.columns[0].n} tasks: {counts}; in brackets: those in which an action has to be said "
        "otherwise. Touched is a task whose goal, observations or actions by the known plan are worded differently, or "
        "whose prompt is rewritten; the others only dilute the difference."
    )


def print_sweep(console: Console, sweep: Sweep) -> None:
    name = printable(sweep.model, single_line=True)
    attempts = f", {sweep.samples} samples of each" if sweep.samples > 1 else ""
    console.print(
        Text(f"{name} on {sweep.title}, {sweep.columns[0].n} tasks{attempts}", style="bold"), soft_wrap=True
    )
    console.print(Text(f"suite {sweep.suite}, at most {sweep.max_turns} turns"), style="dim")
    for note in sweep.notes:
        console.print(Text(printable(note, single_line=True)), style="yellow")
    console.print()
    print_table(console, sweep_table(sweep))
    if first := first_average_line(sweep):
        console.print(Text(first), style="dim")
    others = [sweep.std_sample[measure] for measure in MEASURES]
    sample = " and ".join(f"{100 * value:.2f}" for value in others if value is not None)
    console.print(
        Text(
            f"Std: population standard deviation over the {len(sweep.columns)} columns"
            + (f" (of a sample: {sample})" if sample else "")
        ),
        style="dim",
    )
    if len(sweep.columns) < 2:
        return
    console.print()
    console.print(Text("against the unperturbed run, paired by task", style="bold"))
    console.print(differences_table(sweep))
    if line := touched_line(sweep):
        console.print(Text(printable(line, single_line=True)), style="dim")
    found = [d for column in sweep.columns for d in column.differences.values()]
    console.print(
        Text(
            f"p: {method(found)}. Holm: adjusted over the {len(found)} tests shown; bold where below 0.05. "
            "kept: perturbed / unperturbed. w/t/l: tasks won, tied, lost under the perturbation."
        ),
        style="dim",
    )
