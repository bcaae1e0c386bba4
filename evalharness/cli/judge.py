"""`evalharness judge`: a served model says of each turn of a run whether it was right or wrong."""

from __future__ import annotations

import argparse
from pathlib import Path

from evalharness.cli.common import add_json_option, require_writable, write_json
from evalharness.cli.model_options import add_model, add_serving, at_least_one, model_config, prices

_DESCRIPTION = """\
Ask a model of each turn of a run whether it was right or wrong, what kind of error it was, and why. The judgements are
kept in RUN/judgements/NAME and shown by `evalharness report` at the turn. Replies that hold no verdict are counted,
never guessed. The same command continues; a larger --turns adds to the same turns. docs/judges.md
"""
_MAX_TOKENS = 256


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "judge", help="a model says which turns of a run were wrong", description=_DESCRIPTION
    )
    parser.add_argument("folder", type=Path, metavar="RUN", help="run folder")
    parser.add_argument(
        "--turns",
        type=int,
        metavar="N",
        help="N turns drawn by --seed, as many of each family (default: all)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the draw and of sampling (default: 0)"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="folder (default: one in RUN/judgements)"
    )
    add_model(parser, "judge", "the judge")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="default: 0, greedy")
    add_serving(parser, max_tokens=_MAX_TOKENS)
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from evalharness.judge import Judging, judge_run, judgement_table, watch_asking
    from evalharness.report.terminal import make_console, say

    at_least_one("--turns", args.turns)
    require_writable("--json", args.json)
    config = model_config(args, "judge", temperature=args.temperature, seed=args.seed)
    what = Judging(
        args.folder, config, args.turns, args.seed, args.output, args.prompts, args.plain, prices(args)
    )
    judged = judge_run(what, watch=lambda progress: watch_asking(progress, make_console(stderr=True)))
    console = make_console(stderr=args.json == "-")
    console.print(judgement_table(judged.summary))
    console.print(f"judgements: {judged.folder}", soft_wrap=True, highlight=False, markup=False)
    write_json(args.json, judged.summary)
    if judged.summary["left"]:
        say(f"evalharness: {judged.summary['left']} turns are left to judge; the same command continues")
    if judged.stopped:
        say(f"evalharness: stopped early: {judged.stopped}")
    return judged.exit_status
