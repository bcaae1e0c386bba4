"""Print a sweep over perturbations in 80 columns."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.base.terminal import line, plain_table, remark
from evalharness.results.difference import SIGNIFICANT, Difference
from evalharness.results.html.document import percent
from evalharness.results.leaderboard.marked_rows import DIFFERS
from evalharness.results.score import MEASURES
from evalharness.results.sweep import UNPERTURBED, Sweep
from evalharness.results.sweep import Column as RunColumn
from evalharness.results.tabular.table import Cell, Column, Row, percent_cell
from evalharness.results.tabular.table import Table as Cells
from evalharness.results.tabular.text import print_table
from evalharness.results.terminal.answers import answer_of_sweep, p_value
from evalharness.results.terminal.comparison import method


def _mark(*columns: RunColumn) -> str:
    """Return the mark of perturbations whose wording is ours, if a column has such a perturbation; otherwise ""."""
    return DIFFERS if any(column.recalled for column in columns) else ""


def sweep_table(sweep: Sweep) -> Cells:
    """Return a table of the sweep: one row per measure; one column per run, then average and standard deviation."""
    names = {column.name: column.name for column in sweep.columns} | {UNPERTURBED: "unperturbed"}
    columns = [Column(key, name) for key, name in names.items()]
    columns += [Column("average", "Average"), Column("std", "Std", decimals=2)]
    rows, of_all = [], _mark(*sweep.columns)
    for m in MEASURES:
        cells = {c.name: percent_cell(c.rates[m], c.ci95[m], _mark(c)) for c in sweep.columns}
        cells["average"] = percent_cell(sweep.average[m], sweep.average_ci95[m], of_all)
        cells["std"] = percent_cell(sweep.std_population[m], sweep.std_ci95[m], of_all)
        rows.append(Row(f"{m} %", cells, source="run"))
    return Cells("", tuple(columns), tuple(rows))


def first_average_line(sweep: Sweep) -> str:
    """Return a line with the average over the perturbations of the paper's first version; "" if a run is missing."""
    if sweep.first_average is None:
        return ""
    rates = ", ".join(f"{measure} {percent(sweep.first_average[measure])}" for measure in MEASURES)
    return (
        f"Average over {', '.join(sweep.first_average_of)} only (as in the paper's first version): {rates} %"
    )


def differences_table(sweep: Sweep) -> Table:
    table = plain_table("", "n", "rate", "difference [95 % CI]", "p", "Holm", "kept %", "w/t/l")
    for measure in MEASURES:
        plain = percent(sweep.columns[0].rates[measure])
        table.add_row(Text(f"{measure} %", style="bold"), "", plain)
        for column in sweep.columns[1:]:
            if (d := column.differences.get(measure)) is not None:
                tests, kept = (p_value(d.p), p_value(d.p_holm)), column.retention.get(measure)
                style = "bold" if d.p_holm < 0.05 else None
                table.add_row(f"  {column.name}", *_cells(d, tests, kept), style=style)
    return table


def _cells(d: Difference, tests: tuple[str, str], kept: float | None) -> list[str]:
    return [str(d.n), percent(d.run), d.points, *tests, percent(kept), d.tally]


def changes_table(sweep: Sweep) -> Cells:
    """Return a table of rates and of changes from the unperturbed run, with a row per run."""
    columns, rows = [], []
    for m in MEASURES:
        columns += [Column(m, f"{m} %"), Column(f"{m}_change", "change [95 % CI]")]
    for each in sweep.columns:
        cells = {m: percent_cell(each.rates[m], marks=_mark(each)) for m in MEASURES}
        for m, d in each.differences.items():
            cells[f"{m}_change"] = Cell(text=d.points, marks="*" if d.p_holm < SIGNIFICANT else "")
        rows.append(Row(each.name, cells, source="run"))
    for name, values in (("Average", sweep.average), ("Std", sweep.std_population)):
        cells = {m: percent_cell(values[m], marks=_mark(*sweep.columns)) for m in MEASURES}
        rows.append(Row(name, cells, source="run"))
    return Cells("", tuple(columns), tuple(rows))


def print_sweep(console: Console, sweep: Sweep, *, verbose: bool = False) -> None:
    """Print the sweep. `verbose`: add the table in the paper's layout with intervals, and the table of all tests."""
    attempts = f", {sweep.samples} samples of each" if sweep.samples > 1 else ""
    title = f"{sweep.model} on {sweep.title}, {sweep.columns[0].n} tasks{attempts}"
    console.print(line(answer_of_sweep(sweep), "bold"))
    remark(console, f"{title}; suite {sweep.suite}, at most {sweep.max_turns} turns")
    for note in sweep.notes:
        console.print(line(note, "yellow"))
    print_table(console, changes_table(sweep), gap=False)
    std = f"Std: population standard deviation over the {len(sweep.columns)} columns"
    if not verbose:
        remark(console, f"change: paired by task; * p below 0.05 by Holm; more: --verbose. {std}")
        return
    console.print()
    print_table(console, sweep_table(sweep))
    if first := first_average_line(sweep):
        remark(console, first)
    sample = " and ".join(
        f"{100 * value:.2f}" for m in MEASURES if (value := sweep.std_sample[m]) is not None
    )
    remark(console, std + (f" (sample standard deviation: {sample})" if sample else ""))
    if len(sweep.columns) < 2:
        return
    console.print()
    console.print(Text("against the unperturbed run, paired by task", style="bold"))
    console.print(differences_table(sweep))
    differences = [d for column in sweep.columns for d in column.differences.values()]
    remark(
        console,
        f"p: {method(differences)}. Holm: adjusted over the {len(differences)} tests shown; bold if below 0.05. "
        "kept: perturbed / unperturbed. w/t/l: tasks won, tied, lost under the perturbation.",
    )
