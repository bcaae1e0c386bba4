"""Print a run's score in one line, then by family with 95 % intervals. With TASK_ID, print this task's trajectory. For
a study, print its table. Without RUN, or for a folder of runs, list the runs.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError, nearest
from evalharness.cli.common import add_csv_option, add_json_option
from evalharness.cli.output import results_console, write_csv, write_json
from evalharness.cli.parser import argument
from evalharness.cli.show_behaviour import add_behaviour_options, show_behaviour
from evalharness.cli.show_runs import list_runs
from evalharness.cli.show_tasks import add_task_options, list_tasks
from evalharness.records.files import EPISODES, MANIFEST, STUDY

if TYPE_CHECKING:
    from rich.console import Console

    from evalharness.records.episode import Episode

HELP = "show a run's scores, behaviour or one trajectory; without RUN list runs"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(
        parser,
        "named RUN [TASK_ID]",
        "a run, a study, or a folder of runs; TASK_ID: print this task's trajectory; with "
        "--behaviour several runs are compared",
        nargs="*",
        type=str,
    )
    argument(parser, "--sample N", "number of the sample, if the task was played several times", default=0)
    argument(
        parser,
        "-v --verbose",
        "also show grounding, floor, ceiling, kinds of tasks, the error between attempts, and the use of time; for a "
        "study all tests",
    )
    argument(parser, "--raw", "show a trajectory's replies unparsed, and long texts in full")
    add_csv_option(parser, "a row for each family and kind of task, or for each figure of --behaviour,")
    add_json_option(parser)
    add_behaviour_options(parser)
    add_task_options(parser)


def run(args: argparse.Namespace) -> int:
    folders = [Path(name) for name in args.named]
    if args.tasks is not None:
        return list_tasks(args)
    if args.behaviour:
        return show_behaviour(args, folders)
    if not folders or all(_holds_runs(folder) for folder in folders):
        return list_runs(args, folders)
    args.folder, args.task = folders[0], args.named[1] if len(args.named) > 1 else None
    if len(args.named) > 2:
        raise UserError("show takes one run and one task; compare runs with: evalharness compare RUN_A RUN_B")
    return _show_run(args)


def _holds_runs(folder: Path) -> bool:
    """Return whether the folder contains run folders and is not itself a run or a study."""
    return folder.is_dir() and not any((folder / name).exists() for name in (MANIFEST, STUDY, EPISODES))


def _show_run(args: argparse.Namespace) -> int:
    from evalharness.base.terminal import line
    from evalharness.records.store import read_manifest
    from evalharness.results.summarize import earlier_timing, summarize
    from evalharness.results.terminal.kinds import kind_rows
    from evalharness.results.terminal.table import print_summary

    console = results_console(args)
    if (args.folder / STUDY).is_file():
        return _study(args, console)
    if args.task is not None:
        return _trajectory(args, console)
    titles = read_manifest(args.folder).titles
    summary = summarize(args.folder, earlier_timing(args.folder))
    print_summary(console, summary, titles, verbose=args.verbose)
    if not args.verbose:
        more = f"more: evalharness show {args.folder} --verbose"
        console.print(line(more, "dim"), soft_wrap=True)
    write_csv(args.csv, kind_rows(summary))
    write_json(args.json, summary.to_json())
    return 0


def _study(args: argparse.Namespace, console: Console) -> int:
    """Print the table of a sweep, a Best-of-N or another study, from its stored runs."""
    from evalharness.base.terminal import line
    from evalharness.runs.study_file import run_folders, some_run_folders
    from evalharness.runs.study_results import print_study

    if args.task is not None:
        first = some_run_folders([args.folder])[0]
        raise UserError(
            f"{args.folder} is a study; give one of its runs: evalharness show {first} {args.task}"
        )
    runs = run_folders([args.folder])
    result = print_study(console, args.folder, verbose=args.verbose)
    console.print(line(f"its runs: {', '.join(map(str, runs)) or 'none'}", "dim"), soft_wrap=True)
    write_json(args.json, result.to_json() if result else None)
    return 0


def _matches_task(given: str, task_id: str) -> bool:
    """Return whether `given` is the task's id, its number, or family/number (babyai/121 for babyai/open/121)."""
    family, _, digits = given.rpartition("/")
    number = task_id.rpartition("/")[2]
    if given == task_id or not (digits.isdecimal() and number.isdecimal()):
        return given == task_id
    return int(digits) == int(number) and family in ("", task_id.partition("/")[0])


def _trajectory(args: argparse.Namespace, console: Console) -> int:
    from evalharness.records.store import read_episodes, read_manifest
    from evalharness.results.terminal.trajectory import trajectory

    read_manifest(args.folder)
    task_ids: dict[str, None] = {}
    matches: dict[str, Episode] = {}
    for episode in read_episodes(args.folder):  # no early exit: reading to the end reports all damage
        task_ids[episode.task_id] = None
        if episode.sample == args.sample and _matches_task(args.task, episode.task_id):
            matches[episode.task_id] = episode
    if args.task not in matches and len(matches) > 1:
        raise UserError(
            f"{args.task} matches several tasks of {args.folder}: {', '.join(sorted(matches))}; name one"
        )
    match = matches.get(args.task) or next(iter(matches.values()), None)
    if match is not None:
        for part in trajectory(match, raw=args.raw):
            console.print(part)
        write_json(args.json, match.to_json())
        return 0
    raise UserError(
        f"{args.folder} has no finished episode of {args.task!r}, sample {args.sample}"
        + (nearest(args.task, sorted(task_ids)) if task_ids else "")
    )
