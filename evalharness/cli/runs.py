"""List the run folders below FOLDER: model, suite, how much is done, when, and the held-out score. A study is one
line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from evalharness.base.errors import UserError, nearest
from evalharness.cli.common import add_json_option
from evalharness.cli.output import note, results_console, say, write_json
from evalharness.cli.parser import CommandParser, argument

RESULTS = Path("results")
HELP = "list, remove and rename run folders"


def add_options(parser: CommandParser) -> None:
    argument(parser, "folders FOLDER", "where to look (default: results/)", nargs="*")
    argument(
        parser,
        "--filter [KEY=]TEXT",
        "only runs that mention TEXT, or whose KEY does: folder, model, suite, state (complete, part, running, "
        "damaged), perturbation, family, study, or the key of a label; may be repeated",
        action="append",
        default=[],
    )
    argument(
        parser,
        "--sort KEY",
        "played (default: newest first), folder, model, suite, state, done, success, progress",
        default="played",
    )
    argument(parser, "--reverse", "the other way round")
    add_json_option(parser)
    _add_moves(parser)


def _add_moves(parser: CommandParser) -> None:
    rm = parser.add_beside("rm", _remove, _remove)
    argument(rm, "runs RUN", "run or study folders", nargs="+")
    argument(rm, "--yes", "do not ask")
    mv = parser.add_beside("mv", _move, _move)
    argument(mv, "source RUN", "run or study folder")
    argument(mv, "target NEW", "new name, or a folder to move it into", type=Path)


def run(args: argparse.Namespace) -> int:
    from evalharness.runs.listing import SORTS, chosen, listed
    from evalharness.runs.listing_table import print_runs

    if args.sort not in SORTS:
        raise UserError(f"--sort {args.sort}: no such key{nearest(args.sort, list(SORTS))}")
    for folder in args.folders:
        if not folder.is_dir():
            raise UserError(f"{folder} is {'a file' if folder.exists() else 'not there'}; name a folder")
    folders = args.folders or [RESULTS]
    found = [entry for folder in folders if folder.is_dir() for entry in listed(folder)]
    entries = chosen(found, args.filter, args.sort, reverse=args.reverse)
    write_json(args.json, {"schema": 1, "runs": [entry.to_json() for entry in entries]})
    if entries:
        print_runs(results_console(args), entries)
    else:
        where = ", ".join(map(str, folders))
        note(f"no run {'fits' if found else 'yet'} in {where}")
    return 0


def _remove(args: argparse.Namespace) -> int:
    """Remove run folders and studies. A folder that holds anything else is refused."""
    from evalharness.runs.moves import remove, require_removable

    for folder in args.runs:
        require_removable(folder)
    if not args.yes:
        if not sys.stdin.isatty():
            raise UserError("runs rm asks before it removes anything; without a terminal give --yes")
        say(f"remove {', '.join(map(str, args.runs))}? [y/N] ")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            say("nothing was removed")
            return 0
    for folder in args.runs:
        remove(folder)
        say(f"removed {folder}")
    return 0


def _move(args: argparse.Namespace) -> int:
    """Rename a run folder or a study, or move it into another folder. It is continued there with -o NEW."""
    from evalharness.runs.moves import move

    target = move(args.source, args.target)
    say(f"moved to {target} (the command that made it continues it with -o {target})")
    return 0
