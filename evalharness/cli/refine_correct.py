"""`evalharness refine correct`: a model's own errors, corrected by the teacher in the real simulators."""

from __future__ import annotations

import argparse
from typing import Any

from evalharness.cli.common import add_json_option, make_console, titles
from evalharness.cli.parser import Commands, argument, subcommand
from evalharness.cli.refine_common import (
    add_exclusion,
    add_output,
    exclusion_of,
    show_made,
)


def register(commands: Commands) -> None:
    parser = subcommand(
        commands, "correct", _correct, "a model's own errors, corrected in the real simulators"
    )
    argument(
        parser,
        "runs RUN",
        "runs of the model on open suites of other seeds than 0: evalharness run --suite open --suite-seed 101",
        nargs="+",
    )
    argument(
        parser,
        "--per-episode N",
        "corrections of one episode, at the end of its first N runs of faults (default: 1)",
        default=1,
    )
    argument(parser, "--after-faults N", "faults in a row after which the teacher takes over", default=2)
    argument(parser, "--turns N", "keep the first N turns of the teacher (default: all, to success)")
    argument(parser, "--wordings N", "at most N wordings of each thought (default: all)")
    argument(
        parser,
        "--errors {own,none}",
        "none: the same tasks, played by the teacher from the first turn: data without errors",
        default="own",
    )
    argument(parser, "--seed N", "of wordings", default=0)
    argument(parser, "--workers N", "processes of each family (default: cores)")
    add_exclusion(parser)
    add_output(parser)
    add_json_option(parser)


def _correct(args: argparse.Namespace) -> int:
    """The errors of a model's own runs, corrected: after a fault the family's teacher (an agent without privileged
    information) takes over and must succeed. The model's turns are not trained. The same command gives the same bytes,
    and continues. docs/grounded-data.md
    """
    from evalharness.envs import specs
    from evalharness.models.event_loop import run_to_end
    from evalharness.training.grounded.bars import watch_making
    from evalharness.training.grounded.correction import Correction, correct, plan_correction

    how = Correction(args.per_episode, args.after_faults, args.turns, args.wordings, args.seed, args.errors)
    plan = plan_correction(args.runs, how, specs(), exclusion_of(args))
    progress = plan.counts()
    with watch_making(progress, titles(), make_console(stderr=True)):
        manifest: dict[str, Any] = run_to_end(
            correct(plan, specs(), args.output, workers=args.workers, progress=progress)
        )
    tally = manifest["made"]["tally"]
    lines = [f"{manifest['counts']['samples']:,} corrections of {tally['episodes']:,} episodes"]
    for name in ("left_out", "not_made"):
        lines += [f"  {count:,} {name.replace('_', ' ')}: {reason}" for reason, count in tally[name].items()]
    return show_made(args, lines, manifest)
