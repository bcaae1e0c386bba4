"""`evalharness refine loop`: rounds of play, correction, training and validation, as one study."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from evalharness.cli.common import add_json_option
from evalharness.cli.output import make_console, require_writable, results_console
from evalharness.cli.parser import Commands, argument, subcommand
from evalharness.cli.refine_common import say_on


def register(commands: Commands) -> None:
    parser = subcommand(commands, "loop", run, "rounds of play, correction and training, by one command")
    argument(parser, "file FILE", "YAML; see --print", nargs="?")
    parser.add_argument("--model", help="the first model, as in `tune` (default: the file's, else demo)")
    argument(parser, "--rounds N", "(default: the file's, else 3)")
    argument(parser, "--rejection N", "no corrections: the good ones of N samples of each task")
    argument(parser, "-o --output DIR", "folder (default: results/loop, or of FILE's name)")
    argument(parser, "--dry-run", "list the jobs; make, train and play nothing")
    argument(parser, "--print", "print the file with all that is set")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Rounds in which a model learns from its own play (DAgger): play tasks of a suite that is new in every round,
    correct the errors (refine correct), join them with the data so far, train the model further, play the validation
    suite. The same command continues, and a larger --rounds adds some. FILE has the options of every step.
    docs/training-studies.md
    """
    from evalharness.cli.study import check, forecast, known_options, parse_all, play
    from evalharness.runs.study import LOOP
    from evalharness.training.study.jobs import read_progress
    from evalharness.training.study.loop import plan_loop, read_loop, text_of
    from evalharness.training.study.rounds import print_rounds, read_rounds

    given = {name: getattr(args, name) for name in ("model", "rounds", "rejection")}
    loop, beside = read_loop(args.file, known_options(), **given)
    if args.print:
        say_on(make_console(stderr=False), text_of(loop).rstrip())
        return 0
    require_writable("--json", args.json)
    folder = args.output or Path("results") / (args.file.stem if args.file else "loop")
    plan = plan_loop(loop, folder, beside)
    parse_all(plan)
    progress = read_progress(plan, folder)
    out = results_console(args)
    if args.dry_run:
        for job in plan.jobs.values():
            done = " (done)" if progress.states[job.name].status == "done" else ""
            say_on(out, f"{job.name}{done}: evalharness {shlex.join(job.words)}")
        return forecast(args, out, loop.model, progress, 1)
    check([loop.model], plan, str(args.file or "refine loop"))
    status = play(args, out, text_of(loop), progress, folder, [None], LOOP)
    print_rounds(out, read_rounds(folder))
    return status
