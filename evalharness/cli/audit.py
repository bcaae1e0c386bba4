"""Play the known plan of every task, and a random policy. Show which tasks can be solved within the turn limit,
whether label and simulator agree, ceilings and floors. The same command continues.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.base.errors import at_least
from evalharness.cli.common import (
    add_data_option,
    add_json_option,
    add_suite_options,
    chosen_suite,
    data_folder,
    titles,
)
from evalharness.cli.output import results_console, write_json
from evalharness.cli.parser import argument

if TYPE_CHECKING:
    from evalharness.results.task_range import TaskRange

HELP = "compare labels with simulators; compute ceilings and floors"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "selection LIST", "tasks, as in `run --tasks`", nargs="?", default="all")
    add_suite_options(parser)
    argument(parser, "--floor-samples N", "random attempts at each task (default: 5; 0: no floor)", default=5)
    argument(parser, "-o --output DIR", "folder for its runs (default: under results/)")
    argument(parser, "--csv FILE", "also write a row for each task as CSV")
    argument(parser, "--all-rows", "print every task, not only unsolved or disputed ones")
    add_data_option(parser)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from evalharness.base.terminal import plain_table, words
    from evalharness.checks.audit import audit, totals
    from evalharness.results.task_range import write_ranges
    from evalharness.runs.live import watch

    at_least(0, floor_samples=args.floor_samples)
    data = data_folder(args)
    suite = chosen_suite(args, data)
    seed = args.suite_seed or 0
    names = titles()
    part = "".join(c if c.isalnum() else "-" for c in args.selection)
    folder = args.output or Path("results") / f"audit-{suite}-{seed}-{part}-{args.floor_samples}"
    rows = audit(
        args.selection,
        suite,
        folder=folder,
        data=data,
        suite_seed=seed,
        floor_samples=args.floor_samples,
        watch=watch,
    )
    out = results_console(args)
    table = plain_table("task", "turns", "in time", "progress", words("label and simulator"), gap=2)
    for row in rows:
        if not args.all_rows and row.label_agrees and row.ceiling_success:
            continue
        table.add_row(
            row.task_id,
            "-" if row.plan_turns is None else str(row.plan_turns),
            "yes" if row.ceiling_success else "no",
            f"{100 * row.ceiling_progress:.0f} %",
            row.why or "agree",
        )
    if table.row_count:
        out.print(table)
        out.print()
    summary = totals(rows)
    headings = ("family", "tasks", "solvable", "ceiling s/p %", "floor s/p %", "disagree")
    family_table = plain_table(*headings, gap=2)
    for family, entry in summary.items():
        family_table.add_row(
            names.get(family, family),
            str(entry["n"]),
            str(entry["solvable"]),
            _pair(entry["ceiling_success"], entry["ceiling_progress"]),
            _pair(entry["floor_success"], entry["floor_progress"]),
            str(entry["disagreements"]),
        )
    out.print(family_table)
    out.print(
        f"ceiling: best known plans within {_limits(rows)} turns; floor: {args.floor_samples} random attempts a task"
    )
    if args.csv:
        write_ranges(args.csv, rows)
    write_json(args.json, {"suite": suite, "families": summary, "tasks": [asdict(row) for row in rows]})
    return 0


def _limits(rows: Sequence[TaskRange]) -> str:
    return " or ".join(map(str, sorted({row.max_turns for row in rows}, reverse=True)))


def _pair(success: float | None, progress: float | None) -> str:
    return "-" if success is None or progress is None else f"{100 * success:.1f} / {100 * progress:.1f}"
