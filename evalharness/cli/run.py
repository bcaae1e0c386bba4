"""`evalharness run`: evaluate a model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.cli.common import data_folder, how_to_go_on, require_writable, stopped_line, write_json
from evalharness.cli.parser import CommandParser

if TYPE_CHECKING:
    from evalharness.runs.dry_run import Plan

HELP = "evaluate a model"
DESCRIPTION = """\
Evaluate a model: play every task, score it, and keep everything in a run folder.
The same command continues an interrupted run; episodes that are finished are never played again.
"""


_USUAL = "--model --tasks --suite --limit --draw --agent --perturb --max-tokens --output --dry-run"
_EXAMPLES = """\
  evalharness run --model demo --suite open --draw 8
  evalharness run --model ckpt/ --tasks all
  evalharness run --model http://localhost:8000/v1 --tasks babyai,pddl
"""


def add_options(parser: CommandParser) -> None:
    from evalharness.cli.options import add_run_options, run_options
    from evalharness.cli.seeds import take_several
    from evalharness.cli.studies import add_dry_run_option

    add_run_options(parser)
    add_dry_run_option(parser)
    take_several(run_options(parser)["seed"])
    parser.set_short_help(_USUAL, _EXAMPLES)


def run(args: argparse.Namespace) -> int:
    if isinstance(args.seed, str):
        from evalharness.cli.seeds import run_seeds

        return run_seeds(args)
    from evalharness.base.terminal import make_console, say
    from evalharness.cli.common import titles
    from evalharness.cli.options import config_of
    from evalharness.results.report.table import print_summary
    from evalharness.runs import evaluation
    from evalharness.runs.live import watch

    config = config_of(args)
    require_writable("--json", args.json)
    if args.dry_run:
        from evalharness.runs.dry_run import dry_run

        plan = dry_run(config, data=data_folder(args), on_status=lambda text: say(f"evalharness: {text}"))
        return _show_plan(plan, args)
    out = make_console(stderr=args.json == "-")
    names = titles()
    kept: list[Path] = []
    try:
        outcome = evaluation.evaluate(
            config,
            data=data_folder(args),
            watch=watch,
            on_folder=kept.append,
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(stopped_line(kept, args)) from None
    except SystemExit:
        say(f"evalharness: {stopped_line(kept, args)}")
        raise
    # The last lines say why it stopped.
    print_summary(out, outcome.summary.model_copy(update={"stopped": None}), names)
    if outcome.nothing_to_play:
        out.print(outcome.nothing_to_play, soft_wrap=True)
    out.print(f"run folder: {outcome.folder}", soft_wrap=True)
    write_json(args.json, outcome.summary.to_json())
    if outcome.stopped:
        say(f"evalharness: the run stopped early: {outcome.stopped}")
        say(f"evalharness: finished episodes are kept{how_to_go_on(outcome.stopped)}")
    return outcome.exit_status


def _show_plan(plan: Plan, args: argparse.Namespace) -> int:
    from evalharness.base.terminal import make_console
    from evalharness.cli.common import titles
    from evalharness.runs.dry_run_table import print_plan

    print_plan(make_console(stderr=args.json == "-"), plan, titles())
    write_json(args.json, plan.to_json())
    return 2 if plan.refused else 0
