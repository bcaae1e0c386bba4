"""Behaviour of a run: format errors, invalid actions, loops, recovery after errors, exploration, thoughts, with 95 %
intervals over tasks (not corrected for the number of figures). Further runs are compared with the first, paired by
task. docs/behaviour.md
"""

from __future__ import annotations

import argparse

from evalharness.base.errors import UserError, nearest
from evalharness.cli.common import add_csv_option, add_json_option
from evalharness.cli.output import results_console, write_csv, write_json
from evalharness.cli.parser import argument

HELP = "errors, loops, recovery, exploration; of one run or compared"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "runs RUN", "run folders, or studies; the first run is the baseline", nargs="+")
    argument(parser, "--family NAME", "only this family, with its intervals")
    add_csv_option(parser, "a row for each run, family and figure, with intervals,")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from evalharness.results.behaviour.rows import SCHEMA, behaviour_rows, difference_rows, load_behaviour
    from evalharness.results.report.behaviour import print_behaviour, print_differences, print_runs
    from evalharness.runs.study import some_run_folders

    runs = [load_behaviour(folder) for folder in some_run_folders(args.runs)]
    families = list(dict.fromkeys(family for each in runs for family in each.tasks))
    if args.family is not None and args.family not in families:
        raise UserError(f"no episode of family {args.family!r}{nearest(args.family, families)}")

    def wanted(family: str) -> bool:
        return args.family in (None, family)

    differences = [
        [row for row in difference_rows(runs[0], other) if wanted(row.family)] for other in runs[1:]
    ]
    rows = [[row for row in behaviour_rows(each) if wanted(row.family)] for each in runs]
    console = results_console(args)
    if len(runs) == 1:
        print_behaviour(console, runs[0], rows[0])
    if len(runs) > 1:
        print_runs(console, runs)
    for number, listed in enumerate(differences, start=1):
        console.print()
        print_differences(console, runs, number, listed)
    write_csv(
        args.csv,
        [
            {"run": str(each.folder), "model_name": each.name} | asdict(row)
            for each, listed in zip(runs, rows, strict=True)
            for row in listed
        ],
    )
    described = [{"folder": str(each.folder), "model_name": each.name} for each in runs]
    write_json(
        args.json,
        {
            "schema": SCHEMA,
            "corrected_for_number_of_figures": False,
            "runs": [
                about | {"figures": [asdict(row) for row in listed]}
                for about, listed in zip(described, rows, strict=True)
            ],
            "differences": [
                about | {"figures": [asdict(row) for row in listed]}
                for about, listed in zip(described[1:], differences, strict=True)
            ],
        },
    )
    return 0
