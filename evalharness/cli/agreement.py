"""`evalharness agreement`: how far raters agree on right and wrong."""

from __future__ import annotations

import argparse
from pathlib import Path

from evalharness.cli.common import add_csv_option, add_json_option, titles, write_csv, write_json
from evalharness.errors import UserError

_DESCRIPTION = """\
Compare the first rater with each other one: 2x2 counts, accuracy, Cohen's kappa, precision and recall of "wrong", each
with a 95 % interval, and McNemar's test for bias; over all turns that both judged and in each family. The published
table (GPT-4 against a human) stands below. A rater is `simulator` (its rule is in docs/judges.md), a folder
RUN/judgements/NAME or RUN/labels/NAME, or a CSV file of labels.
"""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "agreement", help="how far a judge, a person and the simulator agree", description=_DESCRIPTION
    )
    parser.add_argument(
        "raters", nargs="+", metavar="RATER", help="two raters at least; the first is the reference"
    )
    parser.add_argument(
        "--run",
        dest="run_folder",
        type=Path,
        metavar="RUN",
        help="run folder (default: the one that a rater's folder lies in)",
    )
    add_csv_option(parser, "a row a pair and family")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from evalharness.judge import agreement_table, compare_raters, published_agreement, read_raters
    from evalharness.report.terminal import make_console

    if len(args.raters) < 2:
        raise UserError("agreement needs two raters; see: evalharness agreement --help")
    first, *others = read_raters(args.raters, args.run_folder)
    rows = []
    for name, other in zip(args.raters[1:], others, strict=True):
        found = compare_raters(first, other)
        if not found:
            raise UserError(f"{args.raters[0]} and {name} have no verdict on the same turn")
        rows += found
    console = make_console(stderr="-" in (args.json, args.csv))
    console.print(agreement_table(rows, titles()))
    everything = [*rows, published_agreement()]
    write_csv(args.csv, [row.flat() for row in everything])
    write_json(args.json, [row.to_json() for row in everything])
    return 0
