"""Serve a page on this machine, on which a person labels drawn turns by keyboard. Each label is saved at once; run the
same command again to continue. With --export or --import no page is served. docs/judges.md
"""

from __future__ import annotations

import argparse

from evalharness.base.errors import UserError, at_least
from evalharness.cli.output import say, write_text
from evalharness.cli.parser import argument

HELP = "let a person label which turns of a run or data set were wrong"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "folder RUN|DATA", "run folder, or a data set's file")
    argument(parser, "--rater NAME", "name of the person; the folder in RUN/labels", default="person")
    argument(parser, "--turns N", "number of turns, sampled as by `evalharness judge --turns`", default=100)
    argument(parser, "--seed N", "seed of the sampled turns", default=0)
    argument(
        parser,
        "--balanced",
        "half of the turns called right and half called wrong by the judge of the run, as in the paper",
    )
    argument(parser, "--port PORT", "port on 127.0.0.1 (default: a free one)", default=0)
    table = parser.add_mutually_exclusive_group()
    argument(
        table,
        "--export FILE",
        "write the sampled turns with their labels as CSV ('-': to standard output)",
        type=str,
        dest="target",
    )
    argument(
        table,
        "--import FILE",
        "take labels from a CSV file with the columns task_id, sample, turn, label (right or wrong), kind, note",
        dest="source",
    )


def run(args: argparse.Namespace) -> int:
    from evalharness.judge.draw import load_turns
    from evalharness.judge.judging import judges_of
    from evalharness.judge.label_server import serve
    from evalharness.judge.labels import LabelFolder, labels_csv, read_labels_csv
    from evalharness.records.data_set import open_as_judged

    at_least(1, turns=args.turns)
    folder = open_as_judged(args.folder)
    loaded = load_turns(folder)
    how: dict[str, int | bool | None] = {"turns": args.turns, "seed": args.seed}
    if args.balanced:
        judges = judges_of(folder)
        if len(judges) != 1:
            raise UserError(f"--balanced needs {folder} to have one judge, and it has {len(judges)}")
        drawn = loaded.draw_balanced_turns(args.turns, args.seed, judges[0])
        how = {"balanced_turns": args.turns, "seed": args.seed}
    else:
        drawn = loaded.draw_turns(args.turns, args.seed)
    given = None
    if args.source is not None:
        given = read_labels_csv(args.source)
        loaded.require_known(given, str(args.source))
    with LabelFolder(loaded, args.rater) as store:
        store.open(how)
        if given is not None:
            changed = {key: label for key, label in given.items() if store.labels.get(key) != label}
            for key, label in changed.items():
                store.add(key, label)
            say(f"{len(changed)} labels imported, {len(given) - len(changed)} were already stored")
            return 0
        if args.target is not None:
            write_text("--export", args.target, labels_csv(drawn, store.labels))
            return 0
        serve(store, drawn, judges_of(folder), port=args.port)
        done = sum(turn.key in store.labels for turn in drawn)
        say(f"{done} of {len(drawn)} turns have a label in {store.folder}")
    return 0
