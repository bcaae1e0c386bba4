"""`evalharness plot`: pictures of runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.cli.common import csv_text, write_text

if TYPE_CHECKING:
    from evalharness.curves import Row
    from evalharness.standings import Leaderboard

_DESCRIPTION = """\
Plots of one run or several: mean progress after each turn, easy against hard tasks, families (beside published rows
named with --against), and curves over k where tasks were sampled more than once. Each as PNG, as SVG and, with the
numbers it shows, as CSV. Needs matplotlib: pip install 'evalharness[plots]'.
"""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "plot", help="progress by turn, difficulty, families, best of k", description=_DESCRIPTION
    )
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run folders")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("plots"),
        metavar="DIR",
        help="folder for the files (./plots)",
    )
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="NAME",
        help='a published row beside the runs, "GPT-4o" or "LLaMA-3-8B/AgentRefine"; may be repeated',
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from envs import specs
    from evalharness import curves
    from evalharness.errors import UserError
    from evalharness.report import plots
    from evalharness.scored_run import load_scored_run
    from evalharness.standings import Benchmark, make_leaderboard

    plots.style()  # before the work, not after it: raises where matplotlib is missing
    runs = [load_scored_run(folder) for folder in args.runs]
    board = make_leaderboard(runs, Benchmark.of(specs()), published=bool(args.against))
    names = [run.name for run in runs]
    labels = [
        name if names.count(name) == 1 else f"{name} ({run.folder.name})"
        for name, run in zip(names, runs, strict=True)
    ]
    labelled = list(zip(labels, runs, strict=True))
    shown = _published_rows(board, args.against)
    shown |= dict(enumerate(labels, start=len(board.standings) - len(runs)))
    tables: dict[str, list[Row]] = {
        "progress_by_turn": [
            row
            for label, run in labelled
            for row in curves.progress_by_turn(label, run.folder, run.max_turns)
        ],
        "difficulty": [row for label, run in labelled for row in curves.by_difficulty(label, run)],
        "families": list(curves.by_family(board, shown)),
        "best_of_k": [
            row
            for label, run in labelled
            if run.config["samples"] > 1
            for row in curves.best_of_k(label, run)
        ],
    }
    try:
        args.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make {args.output}: {error.strerror}; choose another with -o DIR") from None
    titles = {family: title for run in runs for family, title in run.titles.items()} | dict(board.titles)
    for name, rows in tables.items():
        if not rows:
            continue
        stem = args.output / name
        write_text("-o", str(stem.with_suffix(".csv")), csv_text(rows))
        with plots.style():
            plots.save_figure(plots.DRAW[name](rows, titles), stem)
        print(f"wrote {stem}.png, .svg, .csv", file=sys.stderr)
    return 0


def _published_rows(board: Leaderboard, names: list[str]) -> dict[int, str]:
    """Position -> name of the published rows that were asked for."""
    from evalharness.errors import UserError
    from evalharness.tasks import nearest

    found: dict[int, str] = {}
    for name in names:
        matches = {
            i: standing
            for i, standing in enumerate(board.standings)
            if not standing.ours and name in (standing.name, f"{standing.series}/{standing.name}")
        }
        known = [f"{s.series}/{s.name}" for s in (matches.values() or board.standings) if not s.ours]
        if not matches:
            raise UserError(f"--against {name}: no such published row{nearest(name, known)}")
        if len(matches) > 1:
            raise UserError(f"--against {name} could be {', '.join(known)}")
        found |= dict.fromkeys(matches, name)
    return found
