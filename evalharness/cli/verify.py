"""Replay every recorded action and compute every score again. This proves that a run's numbers follow from its
actions, not who chose the actions. Exit status 1 if anything differs. docs/verify.md
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError, at_least
from evalharness.cli.common import add_data_option, add_json_option, data_folder
from evalharness.cli.output import note, require_writable, results_console, write_json
from evalharness.cli.parser import argument

if TYPE_CHECKING:
    from evalharness.checks.verify.findings import FolderCheck

HELP = "replay a run's actions and compute its scores again"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "folders FOLDER", "run folders, or folders of them", nargs="+")
    argument(
        parser,
        "--max-findings N",
        "number of shown findings of one kind (default: 5; --json has all)",
        default=5,
    )
    add_data_option(parser)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from evalharness.checks.verify.table import print_verdict
    from evalharness.runs.folders import find_runs

    require_writable("--json", args.json)
    at_least(0, max_findings=args.max_findings)
    console = results_console(args)
    folders: list[Path] = []
    verdicts, status = [], 0
    for folder in args.folders:
        try:
            folders += find_runs(folder)
        except UserError as error:
            if len(args.folders) == 1:
                raise
            note(str(error))
            status = 2
    for folder in folders:
        try:
            verdict = replay_run(args, folder)
        except UserError as error:
            if len(folders) == 1:
                raise
            note(f"{folder} cannot be verified: {error}")
            status = 2
            continue
        verdicts.append(verdict)
        print_verdict(console, verdict, most=args.max_findings)
        status = max(status, 1 if verdict.findings else 3 if verdict.failures else 0)
    write_json(args.json, {"schema": 1, "runs": [verdict.to_json() for verdict in verdicts]})
    return status


def replay_run(args: argparse.Namespace, folder: Path) -> FolderCheck:
    """Raises UserError if nothing can be said of the run."""
    from evalharness.checks.verify import verify
    from evalharness.runs.live import watch

    return verify(folder, data=data_folder(args), watch=watch)
