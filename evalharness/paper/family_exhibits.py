"""Exhibits by family: a row for each model (tables 1, 2, 7, figure 1), curves over a number (figures 5, 9), and the
number of tasks (table 5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evalharness.paper import plots
from evalharness.paper.exhibit import Exhibit, Filled, Given, plain
from evalharness.paper.family_table import fill, labels_in
from evalharness.paper.over import PublishedPoint, runs_at
from evalharness.paper.over import fill as fill_over
from evalharness.results.curves import Row as Point
from evalharness.results.leaderboard.marked_rows import OWN_LABELS, PART
from evalharness.results.leaderboard.standing_rows import Benchmark
from evalharness.results.published import MAIN, load_table
from evalharness.results.tabular.table import Cell, Column, Row, Table

_RUN = "evalharness run --model CKPT --tasks all"


def _make_table_exhibit(
    name: str, published: str, title: str, shows: str, label: str = "", each: str = ""
) -> Exhibit:
    """Make an exhibit with a row for each model. `published` names its table of published rows. The exhibit takes runs
    with the label `label`; `each` says what the checkpoints of these runs differ in."""
    title = f"{name[:-1]} {name[-1]}: {title}"
    return Exhibit(
        name,
        title,
        shows,
        f"{_RUN} --label {label}, of a checkpoint of each {each}" if label else _RUN,
        lambda given: labels_in(plain(given, label.partition("=")[0] or None)),
        lambda given: fill(plain(given), published, title),
    )


def _make_curve_exhibit(
    name: str, published: Sequence[PublishedPoint], title: str, shows: str, note: str, label: str, each: str
) -> Exhibit:
    """Make a figure with success and progress over the number in the runs' label `label`."""
    title, key = f"{name[:-1]} {name[-1]}: {title}", label.partition("=")[0]
    return Exhibit(
        name,
        title,
        shows,
        f"{_RUN} --label {label}, of a checkpoint of each {each}",
        lambda given: [run for run, _, _ in runs_at(given, key)],
        lambda given: fill_over(given, key, title, published, note),
    )


TABLE1 = _make_table_exhibit(
    "table1", MAIN, "main results", "success and progress of methods and models on the five families"
)
TABLE2 = _make_table_exhibit(
    "table2",
    "ablation",
    "ablation of refinement tuning",
    "one base model trained with and without refinement's loss, refinement's data, and loss of erroneous turns",
    "mode=no_refine_loss",
    "mode",
)
TABLE7 = _make_table_exhibit(
    "table7",
    "synthesis_models",
    "data synthesised by another model",
    "one base model trained on 4,000 conversations that another model wrote",
    "synthesis_model=NAME",
    "writer",
)
FIGURE5 = _make_curve_exhibit(
    "figure5",
    # The training set sizes for which the paper has a table row; its main results use 32,000.
    (
        PublishedPoint(4000, "synthesis_models", {"method": "AgentRefine-GPT-4o (4000 data)"}),
        PublishedPoint(8000, "ablation", {"method": "AgentRefine (8000 data)"}),
        PublishedPoint(32000, MAIN, {"series": "LLaMA-3-8B", "method": "AgentRefine"}),
    ),
    "scores over the size of the training set",
    "one base model trained on 4,000, 8,000, ... conversations",
    "published: sizes that are in a table (2, 7 and 1); the others are not",
    "data_size=8000",
    "size",
)
FIGURE9 = _make_curve_exhibit(
    "figure9",
    (),
    "scores over the share of general data",
    "one base model trained on agent data mixed with general conversations",
    "no sentence or table of the paper states a point of it",
    "mixing_ratio=0.2",
    "mixture",
)


_BARS = "figure 1: success and progress of each family"
_SERIES = "LLaMA-3-8B"
"""The base model on which the paper compares methods."""


def points(rows: Iterable[Row], columns: Sequence[Column]) -> list[Point]:
    """Return success and progress of each row as fractions 0..1."""
    rates, table_rows = [], list(rows)
    published = {row.name + row.marks for row in table_rows if not row.ours}
    for row in table_rows:
        name = row.name + row.marks
        for column in columns:
            cell = row.cell(column)
            if cell.value is not None:
                family, _, measure = column.key.rpartition("_")
                low, high = (round(end / 100, 9) for end in cell.ci95) if cell.ci95 else (None, None)
                rates.append(
                    {
                        # a run named like a published row would be drawn over that row's bar
                        "run": f"{name} (ours)" if row.ours and name in published else name,
                        "source": "run" if row.ours else "published",
                        "family": family,
                        "measure": measure,
                        "held_in": column.key in row.underlined,
                        "incomplete": PART in cell.marks,
                        "own_labels": OWN_LABELS in cell.marks,
                        "rate": round(cell.value / 100, 9),
                        "ci95_low": low,
                        "ci95_high": high,
                    }
                )
    return rates


def _fill_bars(given: Given) -> Filled:
    filled = TABLE1.fill(given)
    whole = filled.tables[0]
    rows = tuple(row for row in whole.rows if row.ours or row.group in (_SERIES, "other papers"))
    notes = ("the published numbers are those of table 1, LLaMA-3-8B", *whole.notes)
    table = Table(_BARS, whole.columns, rows, "%", notes)
    titles = {spec.family: spec.title for spec in given.specs.values()}
    return Filled(
        (table, *filled.tables[1:]),
        filled.missing,
        lambda: plots.draw_families(points(rows, whole.columns), titles),
    )


FIGURE1 = Exhibit(
    "figure1",
    _BARS,
    "the rows of table 1 with LLaMA-3-8B as bars",
    TABLE1.command,
    TABLE1.takes,
    _fill_bars,
)


_TASKS = "table 5: tasks of each family"
_DOMAINS = "the paper prints the domains of its first four rows in another order than the tasks"


def _fill_tasks(given: Given) -> Filled:
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
    return Filled((Table(_TASKS, columns, tuple(rows), notes=(_DOMAINS,)),), given.left_out)


TABLE5 = Exhibit(
    "table5",
    _TASKS,
    "number of tasks of each family, beside those of the suites installed here",
    "nothing: the suites that are installed fill it",
    lambda given: ["the installed suites"],
    _fill_tasks,
)
