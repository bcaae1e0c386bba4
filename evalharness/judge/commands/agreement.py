"""Compare the first rater with each of the other raters: accuracy, Cohen's kappa, precision and recall of "wrong",
McNemar's test. A rater is `simulator`, `marks` (errors that are marked in a data set), a folder RUN/judgements/NAME or
RUN/labels/NAME, or a CSV file of labels. docs/judges.md
"""

from __future__ import annotations

import argparse

from evalharness.base.errors import UserError
from evalharness.cli.common import add_csv_option, add_json_option, titles
from evalharness.cli.output import note, results_console, write_csv, write_json
from evalharness.cli.parser import argument

HELP = "compute how far a judge, a person and the simulator agree"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "raters RATER", "at least two raters; the first is the reference", nargs="+")
    argument(
        parser,
        "--run RUN|DATA",
        "run folder or data set (default: the one that contains a rater's folder)",
        dest="run_folder",
    )
    add_csv_option(parser, "a row for each pair and family")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from evalharness.judge.agreement import compare_raters, find_comparable_agreement
    from evalharness.judge.raters import read_raters
    from evalharness.judge.tables import agreement_table
    from evalharness.records.data_set import open_as_judged

    if len(args.raters) < 2:
        raise UserError("agreement needs two raters; see: evalharness judge agreement --help")
    run_folder = open_as_judged(args.run_folder) if args.run_folder is not None else None
    first, *others = read_raters(args.raters, run_folder)
    for rater in (first, *others):
        if rater.missing:
            note(
                f"{rater.name} has no verdict on {rater.missing:,} of the turns that were sampled for it "
                "(judging was stopped early); run the command of this rater again to add them"
            )
    rows = []
    for name, other in zip(args.raters[1:], others, strict=True):
        compared = compare_raters(first, other)
        if not compared:
            raise UserError(f"{args.raters[0]} and {name} have no verdict on the same turn")
        rows += compared
    console = results_console(args)
    console.print(agreement_table(rows, titles()))
    everything = [*rows, *find_comparable_agreement(rows)]
    write_csv(args.csv, [row.flat() for row in everything])
    write_json(args.json, [row.to_json() for row in everything])
    return 0
