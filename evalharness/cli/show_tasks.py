"""List families or tasks (`show --tasks`)."""

from __future__ import annotations

import argparse
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.text import printable
from evalharness.cli.common import (
    add_data_option,
    add_suite_options,
    choose_suite,
    data_folder,
)
from evalharness.cli.output import results_console, write_json
from evalharness.cli.parser import argument


def add_task_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the tasks")
    argument(
        group,
        "--tasks LIST",
        "list the tasks of `run --tasks LIST` instead of runs; without LIST, list the families",
        nargs="?",
        const="",
        type=str,
    )
    add_suite_options(group)
    add_data_option(group)


def list_tasks(args: argparse.Namespace) -> int:
    from rich.table import Column
    from rich.text import Text

    from evalharness.base.terminal import plain_table, words
    from evalharness.envs import specs
    from evalharness.suites.selection import count_tasks, select

    folder = data_folder(args)
    suite = choose_suite(args, folder)
    seed = args.suite_seed or 0
    console = results_console(args)
    if not args.tasks:
        table = plain_table("family", words("title"), "tasks", words("note"), gap=2)
        rows: list[dict[str, Any]] = []
        for family, spec in specs().items():
            try:
                count, note = count_tasks(spec, suite, folder, seed), ""
            except UserError as error:
                count, note = 0, str(error)
            few = dict(spec.suites.few_tasks) if suite == "open" else {}
            rows.append(
                {"family": family, "title": spec.title, "tasks": count, "note": note, "few_tasks": few}
            )
            table.add_row(family, spec.title, str(count), Text(note, style="yellow"))
        console.print(table)
        for row in rows:
            if row["few_tasks"]:
                kinds = ", ".join(f"{kind} {count}" for kind, count in row["few_tasks"].items())
                console.print(
                    Text(f"{row['title']}: few different tasks, shared by suite seeds other than 0: {kinds}")
                )
        write_json(args.json, {"suite": suite, "families": rows})
        return 0
    families = select(specs(), args.tasks, suite, data=folder, suite_seed=seed)
    tasks = [task for own in families.values() for task in own]
    table = plain_table("task", words("kind"), Column("level", no_wrap=True), words("goal"), gap=2)
    for task in tasks:
        table.add_row(task.id, task.kind, task.difficulty, Text(printable(" ".join(task.goal.split()))))
    console.print(table)
    write_json(args.json, [task.to_json() | {"content_hash": task.content_hash} for task in tasks])
    return 0
