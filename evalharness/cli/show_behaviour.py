"""Show the behaviour of models (`show RUN --behaviour`). docs/behaviour.md"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from evalharness.base.errors import UserError, nearest
from evalharness.cli.output import results_console, write_csv, write_json
from evalharness.cli.parser import argument


def add_behaviour_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("behaviour")
    argument(
        group,
        "--behaviour",
        "format errors, invalid actions, loops, recovery after errors, exploration, thoughts of RUN, with 95 %% "
        "intervals over tasks (not corrected for the number of figures); further runs are compared with the first",
    )
    argument(group, "--family NAME", "only this family, with its intervals")


def show_behaviour(args: argparse.Namespace, folders: Sequence[Path]) -> int:
    from dataclasses import asdict

    from evalharness.results.behaviour.rows import SCHEMA, behaviour_rows, difference_rows, load_behaviour
    from evalharness.results.terminal.behaviour import print_behaviour, print_differences, print_runs
    from evalharness.runs.study_file import some_run_folders

    runs = [load_behaviour(folder) for folder in some_run_folders(folders)]
    families = list(dict.fromkeys(family for each in runs for family in each.tasks))
    if args.family is not None and args.family not in families:
        raise UserError(f"no episode of family {args.family!r}{nearest(args.family, families)}")

    def is_chosen(family: str) -> bool:
        return args.family in (None, family)

    differences = [
        [row for row in difference_rows(runs[0], other) if is_chosen(row.family)] for other in runs[1:]
    ]
    rows = [[row for row in behaviour_rows(each) if is_chosen(row.family)] for each in runs]
    console = results_console(args)
    if len(runs) == 1:
        print_behaviour(console, runs[0], rows[0])
    if len(runs) > 1:
        print_runs(console, runs)
    for number, figures in enumerate(differences, start=1):
        console.print()
        print_differences(console, runs, number, figures)
    write_csv(
        args.csv,
        [
            {"run": str(each.folder), "model_name": each.name} | asdict(row)
            for each, figures in zip(runs, rows, strict=True)
            for row in figures
        ],
    )
    names = [{"folder": str(each.folder), "model_name": each.name} for each in runs]
    write_json(
        args.json,
        {
            "schema": SCHEMA,
            "corrected_for_number_of_figures": False,
            "runs": [
                name | {"figures": [asdict(row) for row in figures]}
                for name, figures in zip(names, rows, strict=True)
            ],
            "differences": [
                name | {"figures": [asdict(row) for row in figures]}
                for name, figures in zip(names[1:], differences, strict=True)
            ],
        },
    )
    return 0
