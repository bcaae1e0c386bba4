"""Table 5 of the first preprint: how many tasks there are."""

from __future__ import annotations

from evalharness.results.paper.exhibit import Exhibit, Filled
from evalharness.results.paper.given import Given
from evalharness.results.paper.published import load_table
from evalharness.results.paper.standing_rows import Benchmark
from evalharness.results.paper.table import Cell, Column, Row, Table

TITLE = "table 5: tasks of each family"
_NOTE = "the paper prints the domains of its first four rows in another order than the tasks"


def _fill(given: Given) -> Filled:
    columns = (Column("number", "tasks", decimals=0), Column("domain", "domain as printed"))
    rows = [
        Row(
            row.names["task"],
            {
                "number": Cell(row.numbers["number"].value),
                "domain": Cell(text=row.names["domain_as_printed"]),
            },
            "published",
        )
        for row in load_table("task_counts")
    ]
    for suite in (Benchmark.of(given.specs).suite, "open"):
        rows += [
            Row(spec.title, {"number": Cell(spec.suites.expected[suite])}, f"suite {suite}, here", "suite")
            for spec in given.specs.values()
            if suite in spec.suites.expected
        ]
    for entry in given.entries:
        for run in entry.runs:
            rows += [
                Row(run.titles[family], {"number": Cell(n)}, f"{entry.label}: played", "run")
                for family, n in run.manifest.counts.items()
            ]
    return Filled((Table(TITLE, columns, tuple(rows), notes=(_NOTE,)),), given.left_out)


EXHIBIT = Exhibit(
    "table5",
    TITLE,
    "number of tasks of each family, beside those of the suites installed here",
    "nothing: the suites that are installed fill it",
    lambda given: ["the installed suites"],
    _fill,
)
