"""`evalharness verify`: whether a run's numbers follow from its actions."""

from __future__ import annotations

import argparse
from pathlib import Path

from evalharness.cli.common import add_data_option, add_json_option, data_folder, require_writable, write_json

_DESCRIPTION = """\
Replay every recorded action of a run in the environments and compute every score again: proof that the numbers of a run
folder follow from its actions. What differs is said exactly, and the exit status is then 1. It does not prove who chose
the actions. FOLDER can be a run, a study, a submission, or a folder that holds some of these.
"""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "verify", help="replay a run's actions and compute its numbers again", description=_DESCRIPTION
    )
    parser.add_argument(
        "folders", type=Path, nargs="+", metavar="FOLDER", help="run folders, or folders of them"
    )
    parser.add_argument(
        "--max-findings",
        type=int,
        default=5,
        metavar="N",
        help="findings of one kind that are shown (default: 5; --json has all)",
    )
    add_data_option(parser)
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from evalharness.cli.common import titles
    from evalharness.engine.run_folders import found_runs
    from evalharness.errors import UserError
    from evalharness.report.live import watch
    from evalharness.report.terminal import make_console, say
    from evalharness.report.verification import print_verdict
    from evalharness.verify import verify
    from evalharness.verify.remembered import remember

    require_writable("--json", args.json)
    if args.max_findings < 0:
        raise UserError(f"--max-findings {args.max_findings}: give 0 or more")
    console, names, shown = make_console(stderr=args.json == "-"), titles(), make_console(stderr=True)
    folders: list[Path] = []
    verdicts, status = [], 0
    for folder in args.folders:
        try:
            folders += found_runs(folder)
        except UserError as error:
            if len(args.folders) == 1:
                raise
            say(f"evalharness: {error}")
            status = 2
    for folder in folders:
        try:
            verdict = verify(
                folder, data=data_folder(args), watch=lambda progress: watch(progress, names, shown)
            )
        except UserError as error:
            if len(folders) == 1:
                raise
            say(f"evalharness: {folder} cannot be verified: {error}")
            status = 2
            continue
        verdicts.append(verdict)
        print_verdict(console, verdict, most=args.max_findings)
        if verdict.verified:
            remember(folder, verdict.content)
        status = max(status, 1 if verdict.findings else 3 if verdict.failures else 0)
    write_json(args.json, {"schema": 1, "runs": [verdict.to_json() for verdict in verdicts]})
    return status
