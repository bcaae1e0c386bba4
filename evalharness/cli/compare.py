"""Compare every run with the first, paired by task: rates, difference with a 95 % interval, p (plain, over kinds, by
Holm), smallest detectable difference, and the tasks that only one run solves. Join repeats with commas (A1,A2). A
study of seeds is read as repeats. Of any other study each run is compared. Runs whose labels
differ in training_seed alone are read as one, the mean over trainings. docs/statistics.md
"""

from __future__ import annotations

import argparse
from pathlib import Path

from evalharness.cli.common import add_csv_option, add_json_option
from evalharness.cli.output import results_console, write_csv, write_json
from evalharness.cli.parser import argument

HELP = "test differences between runs, paired by task"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "baseline RUN_A", "run folder, or repeats A1,A2,...: the baseline; or a study")
    argument(parser, "runs RUN_B", "run folders, or repeats B1,B2,..., to compare with it", nargs="*")
    add_csv_option(parser, "a row for each difference and kind of task")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from evalharness.results.comparison import SCHEMA, compare_runs
    from evalharness.results.report.comparison import print_comparison, print_method, print_runs
    from evalharness.results.trainings import join_labelled, load_joined

    folders = [folder for given in (args.baseline, *args.runs) for folder in _runs_of(given)]
    comparisons = compare_runs(join_labelled([load_joined(folder) for folder in folders]))
    console = results_console(args)
    print_runs(console, comparisons)
    for comparison in comparisons:
        print_comparison(console, comparison)
        console.print()
    print_method(console, comparisons)
    write_csv(
        args.csv, [row for comparison in comparisons for row in (*comparison.rows(), *comparison.kind_rows())]
    )
    write_json(args.json, {"schema": SCHEMA, "comparisons": [c.to_json() for c in comparisons]})
    return 0


def _runs_of(given: str) -> list[str]:
    """What `load_joined` takes for a run, repeats joined with commas, or a study."""
    from evalharness.runs.study import read_study, run_folders

    folder = Path(given)
    study = None if "," in given and not folder.exists() else read_study(folder)
    if study is None:
        return [given]
    runs = [str(run) for run in run_folders([folder])]
    return [",".join(runs)] if study[0] == "seeds" else runs
