"""`evalharness refine correct`: a model's own errors, corrected by the teacher in the real simulators."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from evalharness.cli.common import add_json_option, titles, write_json
from evalharness.cli.refine_common import (
    Commands,
    add_exclusion,
    add_output,
    exclusion_of,
    make_console,
    print_counts,
    say_on,
)

_DESCRIPTION = """\
The errors of a model's own runs, corrected: after a fault the family's teacher (an agent without privileged
information) takes over and must succeed. The model's turns are not trained. The same command gives the same bytes,
and continues. docs/grounded-data.md
"""


def register(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "correct", help="a model's own errors, corrected in the real simulators", description=_DESCRIPTION
    )
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN",
        help="runs of the model on open suites of other seeds than 0: evalharness run --suite open --suite-seed 101",
    )  # fmt: skip
    parser.add_argument(
        "--per-episode", type=int, default=1, metavar="N",
        help="corrections of one episode, at the end of its first N runs of faults (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--after-faults", type=int, default=2, metavar="N",
        help="faults in a row after which the teacher takes over (default: 2)",
    )  # fmt: skip
    parser.add_argument(
        "--turns",
        type=int,
        metavar="N",
        help="keep the first N turns of the teacher (default: all, to success)",
    )
    parser.add_argument(
        "--wordings", type=int, metavar="N", help="at most N wordings of each thought (default: all)"
    )
    parser.add_argument(
        "--errors", choices=("own", "none"), default="own",
        help="none: the same tasks, played by the teacher from the first turn: data without errors (default: own)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of wordings (default: 0)")
    parser.add_argument("--workers", type=int, metavar="N", help="processes of each family (default: cores)")
    add_exclusion(parser)
    add_output(parser)
    add_json_option(parser)
    parser.set_defaults(run=_correct)


def _correct(args: argparse.Namespace) -> int:
    from evalharness.envs import specs
    from evalharness.models.event_loop import run_to_end
    from evalharness.training.grounded.correction import correct, plan_correction
    from evalharness.training.grounded.making import watch_making
    from evalharness.training.grounded.takeover import Correction

    how = Correction(args.per_episode, args.after_faults, args.turns, args.wordings, args.seed, args.errors)
    plan = plan_correction(args.runs, how, specs(), exclusion_of(args))
    progress = plan.counts()
    out = make_console(stderr=args.json == "-")
    with watch_making(progress, titles(), make_console(stderr=True)):
        manifest: dict[str, Any] = run_to_end(
            correct(plan, specs(), args.output, workers=args.workers, progress=progress)
        )
    tally = manifest["made"]["tally"]
    say_on(out, f"{manifest['counts']['samples']:,} corrections of {tally['episodes']:,} episodes")
    for name in ("left_out", "not_made"):
        for reason, count in tally[name].items():
            say_on(out, f"  {count:,} {name.replace('_', ' ')}: {reason}")
    print_counts(out, manifest["counts"])
    say_on(out, f"wrote {args.output}")
    write_json(args.json, manifest)
    return 0
