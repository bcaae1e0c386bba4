"""The list of runs, as `show` prints it without a run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from evalharness.base.errors import UserError, nearest
from evalharness.cli.output import note, results_console, write_json
from evalharness.cli.parser import argument

RESULTS = Path("results")


def add_list_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the list of runs")
    argument(
        group,
        "--filter [KEY=]TEXT",
        "only runs that contain TEXT, in any column or in KEY: folder, model, suite, state "
        "(complete, part, running, damaged), perturbation, family, study, or the key of a label; "
        "may be repeated",
        action="append",
        default=[],
    )
    argument(
        group,
        "--sort KEY",
        "played (default: newest first), folder, model, suite, state, done, success, progress",
        default="played",
    )
    argument(group, "--reverse", "reverse the order")


def list_runs(args: argparse.Namespace, folders: Sequence[Path]) -> int:
    from evalharness.runs.listing import SORTS, chosen, listed
    from evalharness.runs.listing_table import print_runs

    if args.sort not in SORTS:
        raise UserError(f"--sort {args.sort}: no such key{nearest(args.sort, list(SORTS))}")
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder} is {'a file' if folder.exists() else 'not there'}; name a folder")
    folders = folders or [RESULTS]
    found = [entry for folder in folders if folder.is_dir() for entry in listed(folder)]
    entries = chosen(found, args.filter, args.sort, reverse=args.reverse)
    write_json(args.json, {"schema": 1, "runs": [entry.to_json() for entry in entries]})
    if entries:
        print_runs(results_console(args), entries)
    else:
        where = ", ".join(map(str, folders))
        note(f"no run {'fits' if found else 'yet'} in {where}")
    return 0
