"""Do the published numbers follow from each other? An audit of `results/published/*.csv`.

A finding says what does not fit, not who erred: a table may mix runs, and printing may cut off instead of round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev, stdev

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.envs.base import EnvSpec
from evalharness.results.paper.claims import CLAIMS, claim_problem
from evalharness.results.paper.published import (
    MAIN,
    Printed,
    PublishedRow,
    family_columns,
    load_table,
    table_names,
)
from evalharness.results.score import MEASURES
from evalharness.suites.draws import expected_tasks

_EPSILON = 1e-9
SUMMARIES = ("average", "std")
"""Columns of the perturbation table over its other columns, all six of them (checked by this audit)."""

KINDS = {
    "count": "a success rate that no number of solved tasks gives",
    "cut_off": "a success rate that is cut off where others are rounded",
    "order": "a mean progress below the success rate (a solved task has progress 1)",
    "average": "an average that is not the mean of its columns",
    "average_rounding": "an average that is off by no more than rounding explains",
    "std": "a standard deviation that does not follow from its columns",
    "delta": "a difference that is not the one of its rows",
    "delta_rounding": "a difference that is off by no more than rounding explains",
    "same": "columns of one row that hold the same numbers",
    "tables": "the same row with another number in another table",
    "text": "a number in a sentence that the tables do not give",
}
"""Kind of finding -> what it is, in the order in which they are listed."""


@dataclass(frozen=True)
class Finding:
    table: str
    row: str
    column: str
    printed: str
    kind: str
    """A key of `KINDS`."""
    detail: str


def _finding(row: PublishedRow, column: str, kind: str, detail: str, printed: str | None = None) -> Finding:
    """`printed`: where it is not the number of the column."""
    return Finding(row.table, row.label, column, printed or row.numbers[column].text, kind, detail)


def own_tables(specs: Mapping[str, EnvSpec]) -> dict[str, tuple[str, int]]:
    """Table of one family alone -> (its column of success, how many tasks it is over)."""
    return {
        spec.own.published.name: (
            spec.own.published.columns["success"],
            expected_tasks(spec, spec.own.published.suite, 0, None),
        )
        for spec in specs.values()
        if spec.own.published is not None
    }


def audit_published(sizes: Mapping[str, int], own: Mapping[str, tuple[str, int]]) -> list[Finding]:
    """`sizes`: family -> its number of tasks; `own`: as `own_tables`. Sorted by kind, then as the tables are."""
    rows = [row for name in table_names() for row in load_table(name)]
    found = [finding for row in rows for finding in _row_findings(row, sizes, own)]
    found += _best_of_n_findings(rows)
    found += _cross_table_findings(rows)
    found += _first_average_findings(rows)
    for claim in rows:
        if claim.table == CLAIMS and (problem := claim_problem(claim, rows)):
            found.append(_finding(claim, "value", "text", problem))
    kinds = list(KINDS)
    return sorted(found, key=lambda finding: kinds.index(finding.kind))


def _row_findings(
    row: PublishedRow, sizes: Mapping[str, int], own: Mapping[str, tuple[str, int]]
) -> Iterator[Finding]:
    if row.names.get("decoding") != "delta":
        for column, printed in row.numbers.items():
            n = tasks_of(row, column, sizes, own)
            if n and (found := count_problem(printed, n)):
                yield _finding(row, column, *found)
        yield from _order_findings(row)
    yield from _perturbation_findings(row)


def tasks_of(
    row: PublishedRow, column: str, sizes: Mapping[str, int], own: Mapping[str, tuple[str, int]]
) -> int | None:
    """How many yes-or-no outcomes a column is the mean of; None for any other quantity."""
    if row.table in own:
        success, tasks = own[row.table]
        return tasks if column == success else None
    family, _, measure = column.rpartition("_")
    if measure != "success":
        return None
    perturbed = _perturbed(row)
    if family in perturbed:
        # All over the tasks of one family, whose own column is the unperturbed one.
        family = next((name for name in perturbed if name in sizes), family)
    return sizes.get(family)


def _perturbed(row: PublishedRow) -> list[str]:
    """The columns that `SUMMARIES` are over; none in a table without those."""
    if not all(f"{name}_{measure}" in row.numbers for name in SUMMARIES for measure in MEASURES):
        return []
    return [name for name in family_columns([row]) if name not in SUMMARIES]


def count_problem(printed: Printed, n: int) -> tuple[str, str] | None:
    """(kind, detail) where `printed` percent is k / n for no k, or for one only when cut off; else None.

    The tables print one decimal; `40` stands for 40.0.
    """
    step = 10.0 ** -max(printed.decimals, 1)
    below = math.floor(printed.value * n / 100 + _EPSILON)
    for k in (below, below + 1):
        if k <= n and abs(100 * k / n - printed.value) <= step / 2 + _EPSILON:
            return None
    above = below + 1
    exact = 100 * above / n
    if above <= n and 0 <= exact - printed.value < step - _EPSILON:
        return "cut_off", f"{above}/{n} = {exact:.2f}"
    return "count", f"{below}/{n} = {100 * below / n:.2f}, {above}/{n} = {exact:.2f}"


def _order_findings(row: PublishedRow) -> Iterator[Finding]:
    for column, printed in row.numbers.items():
        family, _, measure = column.rpartition("_")
        success = row.numbers.get(f"{family}_success")
        if measure != "progress" or family in SUMMARIES or success is None:
            continue
        if printed.value < success.value - _EPSILON:
            yield _finding(row, column, "order", f"success is {success.text}")


def _perturbation_findings(row: PublishedRow) -> Iterator[Finding]:
    perturbed = _perturbed(row)
    if not perturbed:
        return
    for measure in MEASURES:
        values = [row.numbers[f"{column}_{measure}"].value for column in perturbed]
        average, std = row.numbers[f"average_{measure}"], row.numbers[f"std_{measure}"]
        # The columns are within 0.05 of what was averaged, so is their mean, and so is their population deviation
        # (a seminorm: |std(x + e) - std(x)| <= the root mean square of e).
        mean = fmean(values)
        if abs(mean - average.value) > 0.05 + 0.05 + _EPSILON:
            yield _finding(row, f"average_{measure}", "average", f"the six columns give {mean:.2f}")
        population, sample = pstdev(values), stdev(values)
        if abs(population - std.value) > 0.05 + 0.005 + _EPSILON:
            fits = " (fits)" if abs(sample - std.value) <= 0.05 * math.sqrt(6 / 5) + 0.005 else ""
            yield _finding(
                row, f"std_{measure}", "std", f"population {population:.2f}, sample {sample:.2f}{fits}"
            )
    for i, one in enumerate(perturbed):
        for other in perturbed[i + 1 :]:
            pairs = [(row.numbers[f"{one}_{m}"], row.numbers[f"{other}_{m}"]) for m in MEASURES]
            if all(a.value == b.value for a, b in pairs):
                printed = "/".join(a.text for a, _ in pairs)
                yield _finding(row, other, "same", f"as {one}, success and progress", printed)


def _first_average_findings(rows: list[PublishedRow]) -> Iterator[Finding]:
    """The first preprint's averages, over the three perturbations that it had."""
    columns = {row.names["method"]: row for row in rows if row.table == "perturbation"}
    for row in rows:
        if row.table != "perturbation_preprint_average":
            continue
        for measure in MEASURES:
            mean = fmean(columns[row.names["method"]].numbers[f"p{i}_{measure}"].value for i in (1, 2, 3))
            # The mean is of rounded numbers, and rounded itself.
            yield from _off(row, f"average_{measure}", mean, 0.1, "average", f"P1 to P3 give {mean:.2f}")


def _best_of_n_findings(rows: list[PublishedRow]) -> Iterator[Finding]:
    by_decoding = {
        (row.names["method"], row.names["decoding"]): row for row in rows if row.table == "best_of_n"
    }
    for (method, decoding), row in by_decoding.items():
        if decoding != "delta":
            continue
        for column in row.numbers:
            best, greedy = (by_decoding[method, name].numbers[column].value for name in ("BoN", "greedy"))
            detail = f"{best:.1f} - {greedy:.1f} = {best - greedy:.1f}"
            # Three roundings to 0.05 each: a delta of unrounded numbers may be off by 0.15.
            yield from _off(row, column, best - greedy, 0.15, "delta", detail)


def _off(
    row: PublishedRow, column: str, expected: float, rounding: float, kind: str, detail: str
) -> Iterator[Finding]:
    """A finding of `kind` where the number is off by more than `rounding` explains, of KIND_rounding where by less."""
    off = abs(expected - row.numbers[column].value)
    if off > 0.05 + _EPSILON:
        yield _finding(row, column, kind if off > rounding + _EPSILON else f"{kind}_rounding", detail)


def _cross_table_findings(rows: list[PublishedRow]) -> Iterator[Finding]:
    """A method of the main table's LLaMA-3-8B series, in a table that repeats its greedy row."""
    main = {
        row.names["method"]: row for row in rows if row.table == MAIN and row.names["series"] == "LLaMA-3-8B"
    }
    main["LLaMA3-8B-Instruct"] = main["LLaMA-3-8B-Instruct"]
    for row in rows:
        source = main.get(row.names.get("method", ""))
        if row.table == MAIN or source is None or row.names.get("decoding", "greedy") != "greedy":
            continue
        for column, printed in row.numbers.items():
            original = source.numbers.get(column)
            if original is not None and original.value != printed.value:
                detail = f"{original.text} in {MAIN}"
                yield _finding(row, column, "tables", detail)


def print_findings(console: Console, findings: Sequence[Finding]) -> None:
    for kind, meaning in KINDS.items():
        listed = [finding for finding in findings if finding.kind == kind]
        console.print(Text(f"{len(listed)} × {meaning}", style="bold" if listed else "dim"))
        if not listed:
            continue
        table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
        for justify in ("left", "left", "left", "right", "left"):
            table.add_column(justify=justify, overflow="fold")
        for finding in listed:
            cells = (finding.table, finding.row, finding.column, finding.printed, finding.detail)
            table.add_row("", *map(Text, cells))
        console.print(table)
        console.print()
