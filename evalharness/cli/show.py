"""`evalharness show`: a run's table, or one trajectory."""

from __future__ import annotations

import argparse
from pathlib import Path

from evalharness.cli.common import add_json_option, write_json
from evalharness.errors import UserError


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "show", help="print a run's table, or one of its trajectories", description="Print a run's results."
    )
    parser.add_argument("folder", type=Path, metavar="RUN", help="run folder")
    parser.add_argument("task", nargs="?", metavar="TASK_ID", help="print this task's trajectory")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="which attempt (default: 0)")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:

    from evalharness.analysis.summary import earlier_timing, summarize
    from evalharness.analysis.tables import sorted_episodes
    from evalharness.errors import nearest
    from evalharness.records.store import read_manifest
    from evalharness.report.table import print_summary
    from evalharness.report.terminal import make_console
    from evalharness.report.trajectory import trajectory

    manifest = read_manifest(args.folder)
    console = make_console(stderr=args.json == "-")
    if args.task is None:
        summary = summarize(args.folder, earlier_timing(args.folder))
        print_summary(console, summary, manifest["titles"])
        write_json(args.json, summary)
        return 0
    seen = []
    for episode in sorted_episodes(args.folder):
        if episode.task_id == args.task and episode.sample == args.sample:
            for line in trajectory(episode):
                console.print(line)
            write_json(args.json, episode.to_json())
            return 0
        seen.append(episode.task_id)
    raise UserError(
        f"{args.folder} has no finished episode of {args.task!r}, sample {args.sample}"
        + (nearest(args.task, seen) if seen else "")
    )
