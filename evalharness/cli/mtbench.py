"""`evalharness mtbench`: two-turn questions to a model, graded by a judge."""

from __future__ import annotations

import argparse
from pathlib import Path

from evalharness.cli.common import add_json_option, require_writable, write_json
from evalharness.cli.model_options import add_model, add_serving, model_config, prices
from evalharness.errors import UserError

_DESCRIPTION = """\
A model answers two-turn questions, and a judge grades each answer from 1 to 10 (MT-bench's single-answer grading): a
score of each turn and category with intervals over questions, the published ones beside. Without --questions 16 of our
own are asked; MT-bench's own file is taken as it is. Replies without a grade are counted, never guessed. The same
command continues. docs/judges.md
"""
_MAX_TOKENS = 1024
_JUDGE_TOKENS = 512


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "mtbench", help="two-turn questions, graded by a judge", description=_DESCRIPTION
    )
    parser.add_argument(
        "--questions",
        type=Path,
        metavar="FILE",
        help="JSON lines of question_id, category, turns (two), perhaps reference (default: 16 of ours)",
    )
    parser.add_argument(
        "--references",
        type=Path,
        metavar="FILE",
        help="reference answers: JSON lines of question_id and choices[0].turns",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="folder (default: one under results/)"
    )
    add_model(parser, "model", "the model")
    parser.add_argument(
        "--temperature", type=float, metavar="T", help="of answers (default: by category, as MT-bench has it)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of sampling (default: 0)")
    add_model(parser, "judge", "the judge")
    add_serving(parser, max_tokens=_MAX_TOKENS)
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from evalharness.judge import Mtbench, mtbench_table, read_questions, run_mtbench, watch_asking
    from evalharness.report.terminal import make_console, say

    if args.temperature is not None and not 0 <= args.temperature < float("inf"):
        raise UserError("--temperature is 0 or more")
    require_writable("--json", args.json)
    what = Mtbench(
        read_questions(args.questions, args.references),
        model_config(args, "model", seed=args.seed),
        model_config(args, "judge", seed=args.seed, max_tokens=_JUDGE_TOKENS),
        args.temperature,
        args.output,
        args.prompts,
        args.plain,
        prices(args),
    )
    graded = run_mtbench(what, watch=lambda progress: watch_asking(progress, make_console(stderr=True)))
    console = make_console(stderr=args.json == "-")
    console.print(mtbench_table(graded.scores, graded.summary))
    console.print(f"folder: {graded.folder}", soft_wrap=True, highlight=False, markup=False)
    write_json(args.json, graded.summary)
    if graded.summary["left"]:
        left = graded.summary["left"]
        say(f"evalharness: {left} answers are left to grade; the same command continues")
    if graded.stopped:
        say(f"evalharness: stopped early: {graded.stopped}")
    return graded.exit_status
