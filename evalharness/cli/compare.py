"""Test whether runs differ from the first run, with tests paired by task. Print a one-line answer, then by family the
rates, the difference with a 95 % interval, and p. Join repeats of a run with commas (A1,A2). A study counts as a list
of its runs, and a study of seeds as repeats. Runs whose labels differ only in training_seed are joined. Given two
sweeps, test whether one model loses less under perturbation. docs/statistics.md"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError, at_least
from evalharness.cli.common import add_csv_option, add_json_option
from evalharness.cli.output import results_console, say, write_csv, write_json, write_text
from evalharness.cli.parser import argument

if TYPE_CHECKING:
    from evalharness.results.scored_run import ScoredRun

HELP = "test differences between runs, paired by task"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(
        parser, "baseline RUN_A", "run folder, or repeats A1,A2,...: the baseline; or a study", nargs="?"
    )
    argument(
        parser, "runs RUN_B", "run folders, or repeats B1,B2,..., to compare with the baseline", nargs="*"
    )
    argument(
        parser,
        "-v --verbose",
        "also show p over kinds of tasks, the detectable difference, and the tasks that only one run solves",
    )
    argument(
        parser,
        "--published RATE",
        "test two printed rates instead of runs, such as '46.1%% of 128' '55.5%% of 128'",
        nargs=2,
    )
    argument(parser, "--draws-from N", "with --published: the games were drawn with repetition from N games")
    argument(parser, "--markdown", "print Markdown, for a pull request or an e-mail")
    argument(
        parser,
        "--fail-if LIMIT",
        "exit with status 1 if the whole 95 %% interval of a difference is beyond this limit in points: 'held_out < "
        "-2'; or one end of the interval: 'babyai_progress.low < -5'; may be repeated. docs/ci.md",
        action="append",
        default=[],
    )
    add_csv_option(parser, "a row for each difference and kind of task")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    if args.published is not None:
        return _judge_published(args)
    if args.baseline is None:
        raise UserError("give two runs, or --published with two rates")
    if args.draws_from is not None:
        raise UserError("--draws-from is for --published")
    from evalharness.base.terminal import line
    from evalharness.results.comparison import SCHEMA, compare_runs
    from evalharness.results.limits import parse_limit
    from evalharness.results.perturbation_losses import compare_losses
    from evalharness.results.terminal.comparison import comparisons_as_markdown, print_comparisons, verdict
    from evalharness.results.trainings import join_labelled, load_joined

    limits = [parse_limit(text) for text in args.fail_if]
    given = (args.baseline, *args.runs)
    if (sweeps := _sweeps(given)) is not None:
        comparisons = compare_losses(sweeps)
    else:
        folders = [folder for one in given for folder in _runs_of(one)]
        comparisons = compare_runs(join_labelled([load_joined(folder) for folder in folders]))
    verdicts = [verdict(limit, comparison) for limit in limits for comparison in comparisons]
    if args.markdown:
        text = comparisons_as_markdown(comparisons, [text for text, _ in verdicts])
        write_text("--markdown", "-", text)
    else:
        console = results_console(args)
        print_comparisons(console, comparisons, verbose=args.verbose)
        for text, failed in verdicts:
            console.print(line(text, "bold red" if failed else ""))
    write_csv(args.csv, [row for c in comparisons for row in (*c.rows(), *c.kind_rows())])
    write_json(args.json, {"schema": SCHEMA, "comparisons": [c.to_json() for c in comparisons]})
    return 1 if any(failed for _, failed in verdicts) else 0


def _sweeps(given: Sequence[str]) -> list[tuple[Path, Mapping[str, ScoredRun]]] | None:
    """Return the runs of each sweep; None unless there are several folders and all are sweeps over perturbations."""
    from evalharness.runs.study_file import read_study

    folders = [Path(one) for one in given]
    if len(folders) < 2 or any(
        (study := read_study(folder)) is None or study[0] != "sweep" for folder in folders
    ):
        return None
    from evalharness.runs.study_results import load_played_runs

    return [(folder, load_played_runs(folder)) for folder in folders]


def _runs_of(given: str) -> list[str]:
    """Return arguments of `load_joined`: a single run, repeats joined with commas, or the runs of a study."""
    from evalharness.runs.study_file import read_study, run_folders

    folder = Path(given)
    study = None if "," in given and not folder.exists() else read_study(folder)
    if study is None:
        return [given]
    runs = [str(run) for run in run_folders([folder])]
    return [",".join(runs)] if study[0] == "seeds" else runs


def _judge_published(args: argparse.Namespace) -> int:
    from evalharness.stats.published_gain import describe_gain, parse_rate

    if args.baseline is not None or args.json or args.csv or args.fail_if or args.markdown:
        raise UserError(
            "--published compares two printed rates: give no runs and no other option than --draws-from"
        )
    if args.draws_from is not None:
        at_least(1, draws_from=args.draws_from)
    before, after = map(parse_rate, args.published)
    for text in describe_gain(before, after, args.draws_from):
        say(text, stderr=False)
    return 0
