"""The main results table of AgentRefine (ICLR 2025) with your runs in it. Runs with another suite, turn limit or
perturbation are shown only with --no-published. docs/leaderboard.md
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError
from evalharness.cli.common import add_data_option, add_json_option
from evalharness.cli.output import csv_text, note, results_console, say, write_json, write_text
from evalharness.cli.parser import CommandParser, argument
from evalharness.cli.verify import replay_run

if TYPE_CHECKING:
    from evalharness.results.leaderboard.standings import Leaderboard

HELP = "show published results and your runs in one table"

_FORMATS = ("text", "md", "latex", "csv", "json")


def add_options(parser: CommandParser) -> None:
    argument(parser, "runs RUN", "run folders", nargs="*")
    argument(
        parser,
        "--sort COLUMN",
        "sort by this column, best first, without groups: held_out_success, alfworld_progress, ...",
    )
    argument(
        parser,
        "--table FAMILY",
        "show the published results of this family instead of the main table",
    )
    argument(parser, "--no-published", "only your runs (all of one suite and turn limit)")
    argument(
        parser,
        "--held-in [RUN=]FAMILY",
        "declare that the models of your runs (or of RUN) were trained on tasks of FAMILY; may be repeated",
        action="append",
        default=[],
    )
    argument(
        parser,
        "--format FORMAT",
        f"{', '.join(_FORMATS)} (default: by the ending of -o FILE, else text)",
        choices=_FORMATS,
    )
    argument(parser, "-o --output FILE", "write to this file instead of the terminal", type=str)
    argument(
        parser,
        "--verify",
        "replay every run first; leave out those whose numbers do not follow from their actions",
    )
    add_data_option(parser)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    import json

    from evalharness.envs import specs
    from evalharness.results.leaderboard import table as report
    from evalharness.results.leaderboard.leaderboards import make_leaderboard
    from evalharness.results.leaderboard.standing_rows import Benchmark
    from evalharness.results.scored_run import load_scored_run
    from evalharness.results.tabular.markup import latex, markdown

    if args.table is not None and args.verify:
        raise UserError("--verify is for the main table; leave --table out")
    folders, left_out = _replay_runs(args) if args.verify else (args.runs, [])
    board = make_leaderboard(
        [load_scored_run(folder) for folder in folders],
        Benchmark.of(specs(), args.table),
        published=not args.no_published,
        sort=args.sort,
        held_in=_held_in(args.held_in, args.runs),
        verification=dict.fromkeys(folders, "verified") if args.verify else {},
        notes=left_out,
    )
    form = args.format or _format_of(args.output)
    write_json(args.json, board.to_json())
    if form == "text" and args.output is None:
        report.print_leaderboard(results_console(args), board)
        return 0
    writers: dict[str, Callable[[Leaderboard], str]] = {
        "text": report.text_leaderboard,
        "md": lambda board: markdown(report.flat_table(board)),
        "latex": lambda board: latex(report.flat_table(board)),
        "csv": lambda board: csv_text(board.rows()),
        "json": lambda board: json.dumps(board.to_json(), indent=2) + "\n",
    }
    text = writers[form](board)
    write_text("-o", args.output or "-", text)
    if args.output not in (None, "-"):
        say(f"wrote {args.output}")
    return 0


def _replay_runs(args: argparse.Namespace) -> tuple[list[Path], list[str]]:
    """(runs whose numbers follow from their actions, a line about each other one). Raises UserError if none is left."""
    folders: list[Path] = []
    left_out: list[str] = []
    for folder in args.runs:
        say(f"verifying {folder}")
        try:
            verdict = replay_run(args, folder)
        except UserError as error:
            left_out.append(f"left out: {folder}: {error}")
        else:
            if verdict.verified:
                folders.append(folder)
                continue
            left_out.append(
                f"left out: {folder}: its numbers do not follow from its actions; see: evalharness verify {folder}"
            )
        note(left_out[-1])
    if not folders and args.runs:
        raise UserError("no run is left for the table")
    return folders, left_out


def _held_in(declared: Sequence[str], runs: Sequence[Path]) -> dict[Path, list[str]]:
    """Run folder -> families. Raises UserError for a run that is not in the table."""
    found: dict[Path, list[str]] = {run: [] for run in runs}
    for text in declared:
        folder, _, family = text.rpartition("=")
        chosen = [run for run in runs if not folder or run == Path(folder)]
        if not chosen:
            which = f"{folder} is not among the runs" if folder else "no run is named"
            raise UserError(f"--held-in {text}: {which}; published rows have theirs")
        for run in chosen:
            found[run].append(family)
    return found


def _format_of(output: str | None) -> str:
    endings = {".md": "md", ".tex": "latex", ".csv": "csv", ".json": "json"}
    return endings.get(Path(output).suffix, "text") if output else "text"
