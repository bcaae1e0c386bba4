"""`evalharness sweep`: a model on one family under perturbations, as one study."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.cli.common import add_csv_option, write_csv, write_json
from evalharness.cli.parser import add_late
from evalharness.cli.studies import end_study, play_study

if TYPE_CHECKING:
    from evalharness.analysis.touched import Touched
    from evalharness.config import RunConfig

_LONGEST_PLAN = 300
"""Turns: what a plan needs beyond a run's limit is still needed."""

_DESCRIPTION = """\
Evaluate a model on one family unperturbed and under each perturbation: ordinary runs in one folder, one after the
other on one model server. The same command continues an interrupted study; --perturb with further names extends it.
Shows success and progress of each column with average and Std, then each perturbation against the unperturbed run,
paired by task: difference with interval, exact McNemar p, Holm's correction, retention; and on the tasks alone that it
touches, by their known plans, which are played once. docs/perturbations.md
"""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "sweep", help="a family under every perturbation, with paired tests", description=_DESCRIPTION
    )
    add_late(parser, _add_options)
    parser.set_defaults(run=run)


def _add_options(parser: argparse.ArgumentParser) -> None:
    from evalharness.cli.options import add_run_options

    sweep = parser.add_argument_group("the study")
    sweep.add_argument("--family", required=True, metavar="FAMILY", help="alfworld, babyai, ...")
    sweep.add_argument(
        "--perturb",
        nargs="+",
        metavar="NAME",
        help="the columns beside the unperturbed one (default: the published ones, P1 to P5 in ALFWorld; all of a "
        "family for which none is published); see: evalharness perturb list",
    )
    sweep.add_argument(
        "--tasks", metavar="LIST", help="only these tasks of the family: alfworld:0-9 (default: all of it)"
    )
    add_csv_option(sweep, "a row for each column")  # type: ignore[arg-type]
    add_run_options(parser, without=("perturb", "tasks"))


def run(args: argparse.Namespace) -> int:
    from evalharness.analysis.scored_run import load_scored_run
    from evalharness.analysis.sweep import UNPERTURBED, sweep_of
    from evalharness.engine.study import study_folder
    from evalharness.report.sweep import print_sweep
    from evalharness.report.terminal import make_console

    runs = _columns(args)
    folder = study_folder(runs[UNPERTURBED], f"sweep-{args.family}")
    out = make_console(stderr="-" in (args.json, args.csv))
    played = play_study("sweep", folder, runs, args)
    begun = {name: o.folder for name, o in played.runs.items() if _any_played(o.summary)}
    if UNPERTURBED in begun:
        touched = _touched(args, folder, runs, begun[UNPERTURBED])
        sweep = sweep_of(
            {name: load_scored_run(folder_of_run) for name, folder_of_run in begun.items()},
            touched,
            _first_average(args.family),
        )
        print_sweep(out, sweep)
        write_csv(args.csv, sweep.rows())
        write_json(args.json, sweep.to_json())
    return end_study(out, folder, played)


def _touched(
    args: argparse.Namespace, folder: Path, runs: dict[str, RunConfig], unperturbed: Path
) -> dict[str, Touched]:
    """Column -> the tasks that it touches, by the known plans: played once, in PLANS of the study's folder."""

    from envs import specs as installed_specs
    from evalharness.analysis.sweep import PLANS, UNPERTURBED
    from evalharness.analysis.touched import touched_tasks
    from evalharness.cli.common import data_folder, titles
    from evalharness.config import RunConfig
    from evalharness.engine.evaluation import evaluate
    from evalharness.protocol.perturb import Voice
    from evalharness.protocol.prompt import load_prompt
    from evalharness.records.store import read_episodes
    from evalharness.report.live import watch
    from evalharness.report.terminal import make_console

    plain = runs[UNPERTURBED]
    names = [name for name in runs if name != UNPERTURBED]
    if not names:
        return {}
    played = unperturbed
    if plain.model != "oracle":
        plans = RunConfig(
            model="oracle", tasks=plain.tasks, suite=plain.suite, suite_seed=plain.suite_seed, limit=plain.limit,
            sample=plain.sample, max_turns=_LONGEST_PLAN, prompts=plain.prompts, output=folder / PLANS,
        )  # fmt: skip
        shown, families = make_console(stderr=True), titles()
        shown.print("known plans, to see which tasks each perturbation touches", highlight=False)
        played = evaluate(
            plans, data=data_folder(args), watch=lambda progress: watch(progress, families, shown)
        ).folder
    spec = installed_specs()[args.family]
    prompt = load_prompt(spec, plain.prompts, plain.adaptation)
    episodes = [episode for episode in read_episodes(played) if episode.sample == 0]
    return {name: touched_tasks(episodes, Voice(spec, name), prompt) for name in names}


def _first_average(family: str) -> list[str]:
    """The perturbations that the paper's first version averages over."""
    from envs import specs as installed_specs

    known = installed_specs()[family].wording.perturbations
    return [name for name, how in known.items() if how.in_first_average]


def _columns(args: argparse.Namespace) -> dict[str, RunConfig]:
    """Column -> its run. Raises UserError for an unknown family or perturbation."""
    from envs import specs as installed_specs
    from evalharness.analysis.sweep import UNPERTURBED, default_perturbations
    from evalharness.cli.options import config_of
    from evalharness.errors import UserError, nearest
    from evalharness.protocol.perturb import compose, normal_name

    specs = installed_specs()
    if args.family not in specs:
        raise UserError(f"--family {args.family}: no such family{nearest(args.family, sorted(specs))}")
    spec = specs[args.family]
    chosen = args.perturb or default_perturbations(spec)
    names = list(dict.fromkeys(normal_name(name) for name in chosen))
    for name in names:
        compose(spec, name)
    tasks = args.tasks or args.family
    if any(part.strip().partition(":")[0].partition("/")[0] != args.family for part in tasks.split(",")):
        raise UserError(f"--tasks {tasks}: a sweep is over one family, and this one is over {args.family}")
    config = config_of(args, perturb=None, tasks=tasks)
    config = config.model_copy(update={"perturb": None})
    return {
        UNPERTURBED: config,
        **{name: config.model_copy(update={"perturb": name}) for name in names},
    }


def _any_played(summary: dict[str, object]) -> bool:
    return bool(summary["turns"])
