"""Replay every recorded action and compute every score again. This proves that a run's numbers follow from its
actions, not who chose the actions. Exit status 1 if anything differs. docs/verify.md
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError, at_least
from evalharness.cli.common import add_data_option, add_json_option, data_folder
from evalharness.cli.output import note, require_writable, results_console, say, write_json
from evalharness.cli.parser import argument

if TYPE_CHECKING:
    from evalharness.checks.verify.findings import FolderCheck
    from evalharness.suites.temporary import TemporarySuites

HELP = "replay a run's actions and compute its scores again"
_MINUTES = 10.0
"""For which suites are made once the question was answered. All families of a seed take about four."""


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "folders FOLDER", "run folders, or folders of them", nargs="+")
    argument(
        parser,
        "--max-findings N",
        "number of shown findings of one kind (default: 5; --json has all)",
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


def add_make_suites_option(parser: argparse.ArgumentParser) -> None:
    argument(
        parser,
        "--make-suites MINUTES",
        "make the open suites that the runs need, for at most so many minutes; they are removed "
        "afterwards (default: ask; without a terminal, refuse)",
    )


def suites_on_request(args: argparse.Namespace) -> AbstractContextManager[TemporarySuites]:
    """Open suites that a folder from elsewhere names are made only where the user agrees. Raises UserError."""
    from evalharness.suites.temporary import temporary_suites

    minutes: float | None = args.make_suites
    if minutes is not None and not minutes > 0:
        raise UserError(f"--make-suites {minutes:g}: give minutes, more than 0")
    return temporary_suites(_question(agreed=minutes is not None), 60 * (minutes or _MINUTES))


def _question(*, agreed: bool) -> Callable[[int], None]:
    """Asks once; the answer holds for every suite of the command."""
    answer: bool | None = True if agreed else None

    def ask(suite_seed: int) -> None:
        nonlocal answer
        about = f"the open suite of seed {suite_seed}, which is not on this machine"
        if answer is None:
            if not sys.stdin.isatty():
                raise UserError(
                    f"the run was played on {about}: making it takes minutes; "
                    f"allow that with --make-suites {_MINUTES:g}"
                )
            say(
                f"the run was played on {about}. Make it, and others that are needed, for at most {_MINUTES:g} "
                "minutes in all? They are removed afterwards. [y/N] "
            )
            answer = sys.stdin.readline().strip().lower() in ("y", "yes")
        if not answer:
            raise UserError(f"the run was played on {about}")

    return ask
