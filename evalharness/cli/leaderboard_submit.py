"""Make a submission of finished runs: a folder with their actions, totals and manifest, and metadata.yaml. Every run
is verified first, and refused if its numbers do not follow from its actions. Before you publish it, check the model's
name in manifest.json.
"""

from __future__ import annotations

import argparse

from evalharness.base.errors import UserError, nearest, system_errors
from evalharness.cli.common import add_data_option
from evalharness.cli.output import make_console, say
from evalharness.cli.parser import CommandParser, argument
from evalharness.cli.verify import add_make_suites_option, replayed, suites_on_request


def add_options(parser: CommandParser) -> None:
    argument(parser, "runs RUN", "run folders of one model or method", nargs="+")
    argument(parser, "-o --output FOLDER", "folder to write", required=True)
    argument(parser, "--name TEXT", "name of the model or method (default: the name in the runs)")
    argument(parser, "--organization TEXT", "the organization that submits")
    argument(parser, "--site URL", "web page of the model or method")
    argument(parser, "--oss", "the model or method is open source", default=None)
    argument(
        parser,
        "--held-in FAMILY",
        "the model was trained on tasks of FAMILY; marked as in published rows; may be repeated",
        action="append",
        default=[],
    )
    argument(parser, "--without-text", "include only actions, not the model's texts")
    argument(parser, "--no-verify", "do not replay the runs first")
    add_make_suites_option(parser)
    add_data_option(parser)


def run(args: argparse.Namespace) -> int:
    from evalharness.checks.verify.remembered import was_verified
    from evalharness.checks.verify.table import print_verdict
    from evalharness.envs import specs
    from evalharness.results.leaderboard.submission import write

    for family in args.held_in:
        if family not in specs():
            raise UserError(f"--held-in {family}: no such family{nearest(family, sorted(specs()))}")
    with suites_on_request(args) as suites:
        for folder in args.runs:
            if args.no_verify or was_verified(folder):
                continue
            verdict = replayed(args, folder, suites)
            if not verdict.verified:
                print_verdict(make_console(stderr=True), verdict, most=3)
                raise UserError(f"{folder} is not submitted: its numbers do not follow from its actions")
    with system_errors(f"cannot write {args.output}", "; choose another with -o FOLDER"):
        metadata = write(
            args.output,
            args.runs,
            args.name,
            text=not args.without_text,
            organization=args.organization,
            site=args.site,
            oss=args.oss,
            held_in=list(dict.fromkeys(args.held_in)),
        )
    runs = f"{len(metadata.runs)} run{'s' if len(metadata.runs) > 1 else ''}"
    say(f"wrote {args.output} ({runs} of {metadata.name}; check it with: evalharness verify {args.output})")
    return 0
