"""Show the main results table of AgentRefine (ICLR 2025) with your runs. Runs with another suite, turn limit or
perturbation are shown only with --no-published. docs/leaderboard.md
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError
from evalharness.cli.common import add_data_option, add_json_option
from evalharness.cli.output import csv_text, note, results_console, say, write_json, write_text
from evalharness.cli.parser import CommandParser, argument
from evalharness.cli.verify import PLACES, locate_runs, replay_run

if TYPE_CHECKING:
    from evalharness.results.leaderboard.standings import Leaderboard

HELP = "show published results and your runs in one table"

_FORMATS = ("text", "md", "latex", "csv", "json")


def add_options(parser: CommandParser) -> None:
    argument(parser, "runs RUN", PLACES, nargs="*")
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
    argument(
        parser,
        "--rows NAME",
        "show only the rows whose name or series matches: mine, 'AgentRefine', 'LLaMA-3-8*'; may be repeated",
        action="append",
        default=[],
    )
    argument(parser, "-v --verbose", "also show progress, and the intervals of your rows")
    argument(parser, "--no-published", "show only your runs, which must have the same suite and turn limit")
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
        f"{', '.join(_FORMATS)} (default: by the suffix of -o FILE, otherwise text)",
        choices=_FORMATS,
    )
    argument(parser, "-o --output FILE", "write to this file instead of the terminal", type=str)
    argument(
        parser,
        "--verify",
        "replay every run first (see: evalharness verify); leave out and report runs that fail",
    )
    add_data_option(parser)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    import json

    from evalharness.results.leaderboard import table as report
    from evalharness.results.leaderboard.leaderboards import choose_rows
    from evalharness.results.tabular.markup import latex, markdown

    if args.table is not None and args.verify:
        raise UserError("--verify is for the main table; leave out --table")
    board = choose_rows(_make_board(args), args.rows)
    form = args.format or _format_of(args.output)
    write_json(args.json, board.to_json())
    if form == "text" and args.output is None:
        report.print_leaderboard(results_console(args), board, verbose=args.verbose)
        return 0
    writers: dict[str, Callable[[Leaderboard], str]] = {
        "text": lambda board: report.text_leaderboard(board, verbose=args.verbose),
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


def _make_board(args: argparse.Namespace) -> Leaderboard:
    """Make the table. Raises UserError if a run cannot be in the table, or if `--verify` leaves no run."""
    from evalharness.envs import specs
    from evalharness.results.leaderboard.leaderboards import make_leaderboard, require_one_table
    from evalharness.results.leaderboard.standing_rows import Benchmark
    from evalharness.results.scored_run import ScoredRun, load_scored_run

    benchmark = Benchmark.of(specs(), args.table)
    runs: list[ScoredRun] = []
    left_out: list[str] = []

    def leave_out(problem: str) -> None:
        if not args.verify:
            raise UserError(problem)
        left_out.append(f"left out: {problem}")
        note(left_out[-1])

    with locate_runs(args.runs) as (folders, problems):
        for problem in problems:
            leave_out(problem)
        for name, folder in folders.items():
            try:
                run = replace(load_scored_run(folder), folder=name)
                if args.verify:
                    # Check this before the replay, because a replay takes longer.
                    require_one_table([*runs[:1], run], None if args.no_published else benchmark)
                    _require_verified(args, name, folder)
            except UserError as error:
                leave_out(str(error).replace(str(folder), str(name)))
                continue
            runs.append(run)
    if args.runs and not runs:
        raise UserError("no run is left for the table")
    return make_leaderboard(
        runs,
        benchmark,
        published=not args.no_published,
        sort=args.sort,
        held_in=_read_held_in(args.held_in, args.runs, [run.folder for run in runs]),
        verification=dict.fromkeys((run.folder for run in runs), "verified") if args.verify else {},
        notes=left_out,
    )


def _require_verified(args: argparse.Namespace, name: Path, folder: Path) -> None:
    """Raise UserError if the run's numbers do not follow from its actions, or cannot be checked."""
    say(f"verifying {name}")
    if not replay_run(args, name, folder).verified:
        # `folder` of an archived run is temporary, so the message names the archive.
        place = next(each for each in (name, *name.parents) if each.exists())
        raise UserError(
            f"{name}: its numbers do not follow from its actions; see: evalharness verify {place}"
        )


def _read_held_in(
    declared: Sequence[str], places: Sequence[Path], runs: Sequence[Path]
) -> dict[Path, list[str]]:
    """Map each run to its families of `--held-in`. Raises UserError if a `--held-in` option matches no run."""
    families: dict[Path, list[str]] = {run: [] for run in runs}
    for text in declared:
        place, _, family = text.rpartition("=")
        if not any(not place or given == Path(place) for given in (*places, *runs)):
            which = f"{place} is not among the runs" if place else "no run is named"
            raise UserError(f"--held-in {text}: {which}; the option does not change published rows")
        for run in runs:
            if not place or run.is_relative_to(place):
                families[run].append(family)
    return families


def _format_of(output: str | None) -> str:
    endings = {".md": "md", ".tex": "latex", ".csv": "csv", ".json": "json"}
    return endings.get(Path(output).suffix, "text") if output else "text"
