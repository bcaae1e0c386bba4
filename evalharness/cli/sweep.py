"""`evalharness sweep`: a model on one family under perturbations, or under several agents, as one study."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.cli.common import add_csv_option, write_csv, write_json
from evalharness.cli.parser import CommandParser
from evalharness.cli.studies import add_dry_run_option, dry_run_study, end_study, play_study

if TYPE_CHECKING:
    from evalharness.config import SelectionConfig
    from evalharness.runs.study import Runs

_LONGEST_PLAN = 300
"""Turns: what a plan needs beyond a run's limit is still needed."""

HELP = "a family under every perturbation, or under several agents, with paired tests"
DESCRIPTION = """\
Evaluate a model on one family unperturbed and under each perturbation: success and progress of each column, then each
paired with the unperturbed run. The same command continues; --perturb with further names extends.
docs/perturbations.md

With --over agent=A,B: the model under each of these agents, paired with the first. docs/agents.md
"""


_USUAL = "--model --tasks --suite --over --perturb --limit --draw --max-tokens --output --dry-run"
_EXAMPLES = """\
  evalharness sweep --model ckpt/ --tasks alfworld
  evalharness sweep --model ckpt/ --over agent=react,act --draw 40
  evalharness sweep --model ckpt/ --tasks alfworld --dry-run
"""


def add_options(parser: CommandParser) -> None:
    from evalharness.cli.options import add_run_options

    sweep = parser.add_argument_group("the study")
    sweep.add_argument(
        "--tasks",
        metavar="LIST",
        help="a family, alfworld, or some of its tasks, alfworld:0-9; with --over also several (default: all)",
    )
    sweep.add_argument(
        "--over",
        metavar="agent=NAME,NAME",
        help="agents instead of perturbations, the first as baseline; options behind a plus: window+history=4",
    )
    sweep.add_argument(
        "--perturb",
        nargs="+",
        metavar="NAME",
        help="the columns beside the unperturbed one (default: the published ones, else all of the "
        "family); see: evalharness perturb list",
    )
    add_dry_run_option(sweep)
    add_csv_option(sweep, "a row for each column")  # type: ignore[arg-type]
    add_run_options(parser, without=("perturb", "tasks"))
    parser.set_short_help(_USUAL, _EXAMPLES)


def run(args: argparse.Namespace) -> int:
    from evalharness.base.errors import UserError
    from evalharness.cli.sweep_agents import run_agents

    if args.over:
        return run_agents(args)
    if not args.tasks:
        raise UserError("--tasks FAMILY is missing: a sweep over perturbations is of one family")
    return _run_perturbations(args)


def _run_perturbations(args: argparse.Namespace) -> int:
    from evalharness.base.terminal import make_console
    from evalharness.envs import specs as installed_specs
    from evalharness.protocol.prompt import load_prompt
    from evalharness.results.paper.print_sweep import print_sweep
    from evalharness.results.sweep import UNPERTURBED
    from evalharness.runs.study import study_folder
    from evalharness.runs.study_results import played_runs, sweep_result

    runs = _columns(args)
    plain = runs[UNPERTURBED]
    folder = study_folder(plain, f"sweep-{_family(args)}")
    out = make_console(stderr="-" in (args.json, args.csv))
    if args.dry_run:
        return dry_run_study(out, folder, runs, args)
    played = play_study("sweep", folder, runs, args)
    begun = {name: run for name, run in played_runs(folder).items() if name in played.runs}
    if UNPERTURBED in begun:
        if len(runs) > 1 and plain.policy.model != "oracle":
            _play_plans(args, folder, plain.selection, plain.agent.prompts)
        spec = installed_specs()[_family(args)]
        sweep = sweep_result(folder, begun, load_prompt(spec, plain.agent.prompts, plain.adaptation))
        print_sweep(out, sweep)
        write_csv(args.csv, sweep.rows())
        write_json(args.json, sweep.to_json())
    return end_study(out, folder, played)


def _play_plans(
    args: argparse.Namespace, folder: Path, selection: SelectionConfig, prompts: Path | None
) -> None:
    """The known plans, once: they tell which tasks each perturbation touches."""
    from evalharness.base.terminal import make_console
    from evalharness.cli.common import data_folder
    from evalharness.config import make_config
    from evalharness.results.sweep import PLANS
    from evalharness.runs.evaluation import evaluate
    from evalharness.runs.live import watch

    own = {"model": "oracle", "samples": 1, "max_turns": _LONGEST_PLAN, "output": folder / PLANS}
    plans = make_config({**selection.model_dump(), "prompts": prompts, **own})
    shown = make_console(stderr=True)
    shown.print("known plans, to see which tasks each perturbation touches")
    evaluate(plans, data=data_folder(args), watch=watch)


def _family(args: argparse.Namespace) -> str:
    """Raises UserError for several."""
    from evalharness.base.errors import UserError

    found = {part.strip().partition(":")[0].partition("/")[0] for part in args.tasks.split(",")}
    if len(found) > 1:
        raise UserError(f"--tasks {args.tasks}: a sweep over perturbations is of one family")
    return str(found.pop())


def _columns(args: argparse.Namespace) -> Runs:
    """Column -> its run. Raises UserError for an unknown family or perturbation."""
    from evalharness.base.errors import UserError, nearest
    from evalharness.cli.options import config_of
    from evalharness.envs import specs as installed_specs
    from evalharness.protocol.perturb import compose, normal_name
    from evalharness.results.sweep import UNPERTURBED, default_perturbations

    specs = installed_specs()
    if (family := _family(args)) not in specs:
        raise UserError(f"--tasks {args.tasks}: no such family{nearest(family, sorted(specs))}")
    spec = specs[family]
    chosen = args.perturb or default_perturbations(spec)
    names = list(dict.fromkeys(normal_name(name) for name in chosen))
    for name in names:
        compose(spec, name)
    config = config_of(args, perturb=None)
    config = config.changed(perturb=None)
    return {
        UNPERTURBED: config,
        **{name: config.changed(perturb=name) for name in names},
    }
