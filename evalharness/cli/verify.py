"""Replay every recorded action and compute every score again: proof that a run's numbers follow from its actions, not
of who chose them. Exit status 1 when anything differs. docs/verify.md
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError, at_least
from evalharness.cli.common import (
    add_data_option,
    add_json_option,
    data_folder,
    note,
    require_writable,
    results_console,
    write_json,
)
from evalharness.cli.parser import argument
from evalharness.cli.suites_on_request import add_make_suites_option, suites_on_request

if TYPE_CHECKING:
    from evalharness.checks.verify.findings import FolderCheck
    from evalharness.suites.temporary import TemporarySuites

HELP = "replay a run's actions and compute its numbers again"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "folders FOLDER", "run folders, or folders of them", nargs="+")
    argument(
        parser,
        "--max-findings N",
        "findings of one kind that are shown (default: 5; --json has all)",
        default=5,
    )
    add_make_suites_option(parser)
    add_data_option(parser)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from evalharness.checks.verify.table import print_verdict
    from evalharness.runs.folders import found_runs

    require_writable("--json", args.json)
    at_least(0, max_findings=args.max_findings)
    console = results_console(args)
    folders: list[Path] = []
    verdicts, status = [], 0
    for folder in args.folders:
        try:
            folders += found_runs(folder)
        except UserError as error:
            if len(args.folders) == 1:
                raise
            note(str(error))
            status = 2
    with suites_on_request(args) as suites:
        for folder in folders:
            try:
                verdict = replayed(args, folder, suites)
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


def replayed(args: argparse.Namespace, folder: Path, suites: TemporarySuites) -> FolderCheck:
    """The verdict on a run, remembered where its numbers follow from its actions."""
    from evalharness.checks.verify import verify
    from evalharness.checks.verify.remembered import remember
    from evalharness.runs.live import watch

    verdict = verify(folder, data=data_folder(args), watch=watch, suites=suites)
    if verdict.verified:
        remember(folder, verdict.content)
    return verdict
