"""`evalharness leaderboard`: published results and your runs in one table; an audit of the published numbers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.cli import leaderboard_submit
from evalharness.cli.common import add_data_option, add_json_option, csv_text, write_json, write_text
from evalharness.cli.parser import CommandParser

if TYPE_CHECKING:
    from evalharness.analysis.standings import Leaderboard

_DESCRIPTION = """\
The main results table of AgentRefine (ICLR 2025), grouped by series as published, with your runs in it. Held-in cells
are marked, the held-out score is computed for every row that has its four families, your runs come with intervals and
chance-corrected scores. A dagger marks a part of a family (it never ranks above the whole), a double dagger a run with
prompts, token limits or sampling of its own. Runs of another suite, turn limit or perturbation are refused: their
numbers are not comparable; rank them alone with --no-published. `leaderboard submit` makes runs into a submission,
which --from reads.
"""

_FORMATS = ("text", "md", "html", "latex", "csv", "json")


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "leaderboard", help="published results and your runs in one table", description=_DESCRIPTION
    )
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN", help="run folders")
    parser.add_argument(
        "--sort", metavar="COLUMN", help="held_out_success, alfworld_progress, ...: best first, not grouped"
    )
    parser.add_argument(
        "--table",
        metavar="FAMILY",
        help="the table of a family that has published results of its own, instead of the main one",
    )
    parser.add_argument(
        "--no-published", action="store_true", help="your runs alone (of any one suite and turn limit)"
    )
    parser.add_argument(
        "--held-in",
        action="append",
        default=[],
        metavar="[RUN=]FAMILY",
        help="declare that the model of your runs (with RUN= of that one) was trained on tasks of FAMILY; marked as in "
        "published rows; may be repeated",
    )
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        metavar="FORMAT",
        help=f"{', '.join(_FORMATS)} (default: by the ending of -o FILE, else text)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of to the terminal")
    parser.add_argument(
        "--check",
        action="store_true",
        help="instead, audit every published table: which numbers cannot be, or do not follow from their columns",
    )
    parser.add_argument(
        "--from",
        dest="submissions",
        type=Path,
        nargs="+",
        default=[],
        metavar="FOLDER",
        help="submissions (`leaderboard submit` makes them), or folders of them; those that cannot stand in the table "
        "are left out, with the reason",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="replay every run first; those whose numbers do not follow from their actions are left out",
    )
    add_data_option(parser)
    add_json_option(parser)
    parser.set_defaults(run=run)
    if isinstance(parser, CommandParser):
        leaderboard_submit.add_options(parser.add_beside("submit", leaderboard_submit.DESCRIPTION))


def run(args: argparse.Namespace) -> int:
    return _check(args) if args.check else _show(args)


def _show(args: argparse.Namespace) -> int:
    import json

    from envs import specs
    from evalharness.analysis.leaderboards import make_leaderboard, make_own_leaderboard, own_table
    from evalharness.analysis.scored_run import load_scored_run
    from evalharness.analysis.standing_rows import Benchmark
    from evalharness.cli.leaderboard_entries import read_entries
    from evalharness.errors import UserError
    from evalharness.report import leaderboard as report
    from evalharness.report.page import page
    from evalharness.report.terminal import make_console, say

    runs = [load_scored_run(folder) for folder in args.runs]
    how: dict[str, Any] = {"published": not args.no_published, "sort": args.sort}
    if args.table is None:
        declared = _held_in(args.held_in, args.runs)
        entries = read_entries(args, runs, published=not args.no_published)
        board = make_leaderboard(
            entries.runs,
            Benchmark.of(specs()),
            held_in=declared | entries.held_in,
            verification=entries.verification,
            notes=entries.left_out,
            **how,
        )
    elif args.submissions or args.verify:
        raise UserError("--from and --verify are for the main table; leave --table out")
    else:
        board = make_own_leaderboard(runs, own_table(specs(), args.table), **how)
    form = args.format or _format_of(args.output)
    write_json(args.json, board.to_json())
    if form == "text" and args.output is None:
        report.print_leaderboard(make_console(stderr=args.json == "-"), board)
        return 0
    writers: dict[str, Callable[[Leaderboard], str]] = {
        "text": report.text_leaderboard,
        "md": report.markdown,
        "latex": report.latex,
        "html": page,
        "csv": lambda board: csv_text(board.rows()),
        "json": lambda board: json.dumps(board.to_json(), indent=2) + "\n",
    }
    text = writers[form](board)
    write_text("-o", args.output or "-", text)
    if args.output not in (None, "-"):
        say(f"wrote {args.output}")
    return 0


def _held_in(declared: Sequence[str], runs: Sequence[Path]) -> dict[Path, list[str]]:
    """Run folder -> families. Raises UserError for a run that is not in the table."""
    from evalharness.errors import UserError

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
    endings = {".md": "md", ".html": "html", ".tex": "latex", ".csv": "csv", ".json": "json"}
    return endings.get(Path(output).suffix, "text") if output else "text"


def _check(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from envs import specs
    from evalharness.analysis.published_audit import audit_published, own_tables
    from evalharness.analysis.standing_rows import Benchmark
    from evalharness.errors import UserError
    from evalharness.report.published_audit import print_findings
    from evalharness.report.terminal import make_console

    if args.runs or args.submissions:
        raise UserError("--check audits the published tables and takes no run; leave the run folders out")
    findings = audit_published(Benchmark.of(specs()).sizes, own_tables(specs()))
    print_findings(make_console(stderr=args.json == "-"), findings)
    write_json(args.json, {"findings": [asdict(finding) for finding in findings]})
    return 0
