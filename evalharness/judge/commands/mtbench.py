"""A model answers two-turn questions, and a judge grades each answer from 1 to 10 (MT-bench's single-answer grading).
Shows scores of each turn and category with intervals. Run the same command again to continue. docs/judges.md
"""

from __future__ import annotations

import argparse

from evalharness.base.errors import UserError
from evalharness.cli.common import add_json_option
from evalharness.cli.output import make_console, require_writable, show_outcome
from evalharness.cli.parser import argument
from evalharness.judge.commands.options import add_how

HELP = "let a judge grade answers to two-turn questions"
_MAX_TOKENS = 1024
_JUDGE_TOKENS = 512
_FASTCHAT_TOKENS = 2048
"""Maximum number of tokens of the judge's reply, as in FastChat."""


def add_options(parser: argparse.ArgumentParser) -> None:
    from evalharness.cli.options import add_model

    argument(
        parser,
        "--questions FILE",
        "JSON lines of question_id, category, turns (two) and optionally reference (default: 16 "
        "questions of ours)",
    )
    argument(parser, "--references FILE", "reference answers: JSON lines of question_id and choices[0].turns")
    argument(
        parser,
        "--judge-prompts FILE",
        "grade with the published prompts, FastChat's judge_prompts.jsonl (default: our prompt)",
    )
    argument(parser, "-o --output DIR", "folder (default: one under results/)")
    add_model(parser, "model", "the model")
    argument(parser, "--temperature T", "temperature of answers (default: by category, as in MT-bench)")
    argument(parser, "--seed N", "seed of sampling", default=0)
    add_model(parser, "judge", "the judge")
    add_how(parser, max_tokens=_MAX_TOKENS)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from evalharness.cli.options import attempts_of, policy_of
    from evalharness.judge.mtbench import Mtbench, run_mtbench
    from evalharness.judge.questions import read_questions
    from evalharness.judge.tables import mtbench_table
    from evalharness.models.work import watch_work

    if args.temperature is not None and not 0 <= args.temperature < float("inf"):
        raise UserError("--temperature is 0 or more")
    require_writable("--json", args.json)
    what = Mtbench(
        read_questions(args.questions, args.references),
        policy_of(args, "model", max_tokens=args.max_tokens or _MAX_TOKENS, temperature=None),
        policy_of(
            args,
            "judge",
            max_tokens=_FASTCHAT_TOKENS if args.judge_prompts else _JUDGE_TOKENS,
            temperature=None,
        ),
        args.temperature,
        args.output,
        args.prompts,
        args.judge_prompts,
        args.plain,
        attempts_of(args),
    )
    graded = run_mtbench(what, watch=lambda progress: watch_work(progress, make_console(stderr=True)))
    return show_outcome(
        args, graded, mtbench_table(graded.scores, graded.summary), "answers are left to grade"
    )
