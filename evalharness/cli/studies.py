"""Play the runs of a study with a live view, and print the study's result, for `sweep`, `bon` and other commands."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError
from evalharness.cli.common import data_folder, describe_continuation, report_kept_episodes, titles
from evalharness.cli.output import (
    csv_text,
    make_console,
    note,
    require_writable,
    results_console,
    write_csv,
    write_json,
    write_text,
)
from evalharness.cli.parser import argument

if TYPE_CHECKING:
    from rich.console import Console

    from evalharness.results.checkpoints import Training
    from evalharness.runs.study import Runs, StudyOutcome


def play_study(
    kind: str,
    folder: Path,
    runs: Runs,
    args: argparse.Namespace,
    *,
    elsewhere: Mapping[str, Path] | None = None,
    began: float | None = None,
) -> StudyOutcome:
    """Play the runs and show their progress. After an interrupt, show where the finished episodes are stored."""
    from evalharness.runs.live import watch
    from evalharness.runs.study import play

    for option in ("json", "csv", "tasks_csv"):
        require_writable("--" + option.replace("_", "-"), getattr(args, option, None))
    console = make_console(stderr=True)
    with report_kept_episodes(args) as folders:
        return play(
            kind,
            folder,
            runs,
            elsewhere=elsewhere,
            data=data_folder(args),
            began=began,
            watch=watch,
            on_run=lambda name, number, of: console.print(f"{number} of {of}: {name}"),
            on_folder=folders.append,
        )


def run_study(
    kind: str,
    folder: Path,
    runs: Runs,
    args: argparse.Namespace,
    *,
    elsewhere: Mapping[str, Path] | None = None,
    print_incomplete: bool = False,
) -> int:
    """Play a study, or with `--dry-run` estimate it; print its table and write the requested files.

    `print_incomplete`: print the table even if a run stopped early.
    """
    from evalharness.records.files import STUDY
    from evalharness.records.store import lock_folder
    from evalharness.runs.study_results import print_study

    out = results_console(args)
    if args.dry_run:
        return dry_run_study(out, folder, runs, args)
    with lock_folder(folder, STUDY):
        outcome = play_study(kind, folder, runs, args, elsewhere=elsewhere)
        result = print_study(out, folder) if print_incomplete or not outcome.stopped else None
        if result is not None:
            for option, rows in (("csv", "rows"), ("tasks_csv", "task_rows")):
                if (target := getattr(args, option, None)) is not None:
                    write_csv(target, getattr(result, rows)())
            write_json(args.json, result.to_json())
        return end_study(out, folder, outcome)


def show_training(args: argparse.Namespace, stem: Path, training: Training | None) -> None:
    """Print the table of checkpoints. Write the requested files, and a plot: `stem`.png, .svg and .csv."""
    from evalharness.results.curves import by_checkpoint
    from evalharness.results.figures import looks, plots
    from evalharness.results.terminal.checkpoints import print_training

    if training is None:
        return
    print_training(results_console(args), training)
    write_csv(args.csv, training.rows())
    write_json(args.json, training.to_json())
    rows = list(by_checkpoint(training))
    write_text("--csv", str(stem.with_suffix(".csv")), csv_text(rows))
    try:
        with looks.style():
            looks.save_figure(plots.draw_over(rows, training.titles), stem)
    except UserError as error:
        note(f"no plot: {error}")


def end_study(out: Console, folder: Path, outcome: StudyOutcome) -> int:
    """Print the study's folder and the runs that are left; return the exit status."""
    for name, run in outcome.runs.items():
        if run.nothing_to_play:
            out.print(f"{name}: {run.nothing_to_play}", soft_wrap=True)
    out.print(
        f"study folder: {folder}  (pictures: evalharness report {folder} --figure plots)", soft_wrap=True
    )
    if outcome.stopped:
        note(f"the study stopped early: {outcome.stopped}")
        if outcome.left:
            note(f"still to play: {', '.join(outcome.left)}")
        note(f"finished episodes are kept{describe_continuation(outcome.stopped)}")
    return outcome.exit_status


def add_dry_run_option(parser: argparse._ActionsContainer) -> None:
    argument(parser, "--dry-run", "show the tasks and estimate tokens and time, without playing")


def dry_run_study(out: Console, folder: Path, runs: Runs, args: argparse.Namespace) -> int:
    """Print the first run's estimate, the episodes left in the other runs, and the estimate of all runs."""
    from evalharness.runs.dry_run import dry_run, estimate_line, folder_line, print_estimate

    require_writable("--json", args.json)
    estimates = {
        name: dry_run(
            config.with_options(output=folder / name),
            data=data_folder(args),
            on_status=note,
        )
        for name, config in runs.items()
    }
    (first, estimate), *others = estimates.items()
    print_estimate(out, estimate, titles())
    left = [f"{name} ({sum(family.left for family in each.families)} to play)" for name, each in others]
    lines = [
        f"that was {first}, the first of {len(estimates)} runs in {folder}; further runs: {', '.join(left)}"
    ]
    lines += [folder_line(each) for _, each in others if each.refused]
    for line in (*lines, f"all {len(estimates)} runs: {estimate_line(*estimates.values())}"):
        out.print(line, soft_wrap=True)
    write_json(
        args.json, {"folder": str(folder), "runs": {name: each.to_json() for name, each in estimates.items()}}
    )
    return 2 if any(each.refused for each in estimates.values()) else 0
