"""Ask a model whether each turn of a run or data set was right, which kind of error it was, and why. The answers are in
RUN/judgements/NAME (data.judged/judgements). Run the same command again to continue; a larger --turns adds turns.
docs/judges.md
"""

from __future__ import annotations

import argparse

from evalharness.base.errors import at_least
from evalharness.cli.common import add_json_option
from evalharness.cli.output import make_console, require_writable, show_outcome
from evalharness.cli.parser import CommandParser, argument
from evalharness.judge.commands import agreement, label, mtbench
from evalharness.judge.commands.options import add_how

HELP = "ask a model which turns of a run or data set were wrong"
_MAX_TOKENS = 256


def add_options(parser: CommandParser) -> None:
    from evalharness.cli.options import add_model

    argument(parser, "folder RUN|DATA", "run folder, or a data set's file")
    argument(parser, "--turns N", "sample N turns, equally many from each family (default: all)")
    argument(parser, "--seed N", "seed of the sampled turns and of the judge's sampling", default=0)
    argument(parser, "-o --output DIR", "folder (default: one in RUN/judgements)")
    add_model(parser, "judge", "the judge")
    argument(parser, "--temperature T", "temperature of the judge (default: 0, greedy)", default=0.0)
    add_how(parser, max_tokens=_MAX_TOKENS)
    add_json_option(parser)
    for name, module in (("label", label), ("agreement", agreement), ("mtbench", mtbench)):
        parser.add_beside(name, module)


def run(args: argparse.Namespace) -> int:
    from evalharness.cli.options import attempts_of, policy_of
    from evalharness.judge.judging import Judging, judge_run
    from evalharness.judge.tables import judgement_table
    from evalharness.models.work import watch_work
    from evalharness.records.data_set import open_as_judged

    at_least(1, turns=args.turns)
    require_writable("--json", args.json)
    judge = policy_of(args, "judge", max_tokens=args.max_tokens or _MAX_TOKENS)
    what = Judging(
        open_as_judged(args.folder),
        judge,
        args.turns,
        args.seed,
        args.output,
        args.prompts,
        args.plain,
        attempts_of(args),
    )
    outcome = judge_run(what, watch=lambda progress: watch_work(progress, make_console(stderr=True)))
    return show_outcome(args, outcome, judgement_table(outcome.summary), "turns are left to judge")
