"""Evaluate a model on one family, unperturbed and under each perturbation. Show success and progress of each run, and
paired tests against the unperturbed run. The same command continues; more names after --perturb extend the study.
docs/perturbations.md

With --over agent=A,B the runs differ in the agent, and each is paired with the first. docs/agents.md
"""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError, nearest
from evalharness.cli.common import add_csv_option
from evalharness.cli.output import results_console, write_csv, write_json
from evalharness.cli.parser import CommandParser, argument
from evalharness.cli.studies import add_dry_run_option, dry_run_study, end_study, play_study, run_study

if TYPE_CHECKING:
    from evalharness.config import AgentConfig
    from evalharness.runs.study import Runs


HELP = "play a family under every perturbation, or with several agents"


_USUAL = "--model --tasks --suite --over --perturb --limit --draw --max-tokens --output --dry-run"
_EXAMPLES = """\
  evalharness sweep --model ckpt/ --tasks alfworld
  evalharness sweep --model ckpt/ --over agent=react,act --draw 40
  evalharness sweep --model ckpt/ --tasks alfworld --dry-run
"""


def add_options(parser: CommandParser) -> None:
    from evalharness.cli.options import add_run_options

    sweep = parser.add_argument_group("the study")
    argument(
        sweep,
        "--tasks LIST",
        "the family, alfworld, or some of its tasks, alfworld:0-9; required, except with --over "
        "(default: all)",
    )
    argument(
        sweep,
        "--over agent=NAME,NAME",
        "compare agents instead of perturbations; the first one is the baseline; options follow a"
        " plus: window+history=4. Or protocols: protocol=agentrefine,verl-agent",
    )
    argument(
        sweep,
        "--perturb NAME",
        "the perturbations, or files of your own (default: the published ones of the family, else all); see: "
        "evalharness data perturbations list",
        nargs="+",
    )
    add_dry_run_option(sweep)
    add_csv_option(sweep, "a row for each column")
    add_run_options(parser, without=("perturb", "tasks"))
    parser.set_short_help(_USUAL, _EXAMPLES)


def run(args: argparse.Namespace) -> int:
    from evalharness.config import SelectionConfig, make_part, options_in

    in_file = options_in(args.config)
    if in_file.get("perturb") and not args.perturb:
        raise UserError(f"perturb in {args.config} is for one run; a sweep's are named with --perturb")
    if args.over:
        return run_agents(args)
    tasks = args.tasks or in_file.get("tasks")
    if not tasks:
        raise UserError("--tasks FAMILY is missing: a sweep over perturbations is of one family")
    args.tasks = make_part(SelectionConfig, {"tasks": tasks}).tasks
    return _run_perturbations(args)


def _run_perturbations(args: argparse.Namespace) -> int:
    from evalharness.records.files import STUDY
    from evalharness.records.store import held_folder
    from evalharness.results.report.sweep import print_sweep
    from evalharness.results.sweep import UNPERTURBED
    from evalharness.runs.study import study_folder
    from evalharness.runs.study_results import load_played_runs, sweep_result

    runs = _columns(args)
    plain = runs[UNPERTURBED]
    folder = study_folder(plain, f"sweep-{_family(args)}")
    out = results_console(args)
    if args.dry_run:
        return dry_run_study(out, folder, runs, args)
    with held_folder(folder, STUDY):
        played = play_study("sweep", folder, runs, args)
        begun = {name: run for name, run in load_played_runs(folder).items() if name in played.runs}
        if UNPERTURBED in begun:
            sweep = sweep_result(begun)
            print_sweep(out, sweep)
            write_csv(args.csv, sweep.rows())
            write_json(args.json, sweep.to_json())
        return end_study(out, folder, played)


def _family(args: argparse.Namespace) -> str:
    """Raises UserError for several."""
    found = {part.strip().partition(":")[0].partition("/")[0] for part in args.tasks.split(",")}
    if len(found) > 1:
        raise UserError(f"--tasks {args.tasks}: a sweep over perturbations is of one family")
    return str(found.pop())


def _columns(args: argparse.Namespace) -> Runs:
    """Column -> its run. Raises UserError for an unknown family or perturbation."""
    from evalharness.cli.options import config_of
    from evalharness.envs import specs as installed_specs
    from evalharness.protocol.perturbation_names import compose, normal_name, read_files
    from evalharness.results.sweep import UNPERTURBED, default_perturbations

    specs = installed_specs()
    if (family := _family(args)) not in specs:
        raise UserError(f"--tasks {args.tasks}: no such family{nearest(family, sorted(specs))}")
    spec = specs[family]
    chosen = args.perturb or default_perturbations(spec)
    config = config_of(args, perturb=None)
    columns = {UNPERTURBED: config}
    for given in chosen:
        text, own = read_files(given)
        name = normal_name(text)
        compose(spec, name)
        columns[name] = config.with_options(perturb=name, own_perturbations=own)
    return columns


KIND = "agents"
EXAMPLE = "agent=react,act,window+history=4"


def run_agents(args: argparse.Namespace) -> int:
    from evalharness.runs.study import study_folder

    runs = _agent_columns(args)
    return run_study(KIND, study_folder(next(iter(runs.values())), KIND), runs, args, shows_a_part=True)


def _agent_columns(args: argparse.Namespace) -> Runs:
    """Folder's name -> its run. Raises UserError for what is no list of agents."""
    from evalharness.cli.options import config_of

    key, equals, listed = args.over.partition("=")
    said = list(dict.fromkeys(filter(None, (part.strip() for part in listed.split(",")))))
    if key.strip() == "protocol" and equals and len(said) > 1:
        return _protocols(args, said)
    if key.strip() != "agent" or not equals or len(said) < 2:
        raise UserError(
            f"--over {args.over}: give two agents or more: --over {EXAMPLE}; or two protocols: --over protocol=A,B"
        )
    if args.agent or args.agent_option or args.perturb:
        given = "--perturb" if args.perturb else "--agent"
        raise UserError(f"--over and {given} exclude each other; an agent's options go with it: {EXAMPLE}")
    _refuse_elsewhere(args, "agent", "agent_option")
    config = config_of(args, perturb=None)
    return _by_folder(args, {one: replace(config, agent=_agent(config.agent, one)) for one in said})


def _refuse_elsewhere(args: argparse.Namespace, *options: str) -> None:
    """Raises UserError for what the configuration file sets and `--over` would replace."""
    from evalharness.config import options_in

    in_file = options_in(args.config)
    found = [f"{name} in {args.config}" for name in options if in_file.get(name)]
    if found:
        raise UserError(f"--over {args.over} and {found[0]} exclude each other")


def _by_folder(args: argparse.Namespace, runs: Runs) -> Runs:
    """Folder's name -> the run of what `--over` names. Raises UserError where two would share a folder."""
    found = {re.sub(r"[^\w.+=-]+", "-", said): run for said, run in runs.items()}
    if len(found) < len(runs):
        raise UserError(f"--over {args.over}: two of them would share a folder; rename a file")
    return found


def _protocols(args: argparse.Namespace, said: list[str]) -> Runs:
    """Each protocol plays the same tasks with as many turns: else nothing could be paired. Raises UserError."""
    from evalharness.cli.options import config_of
    from evalharness.protocol.published import load_protocol

    if args.protocol or args.perturb:
        given = "--perturb" if args.perturb else "--protocol"
        raise UserError(f"--over {args.over} and {given} exclude each other")
    _refuse_elsewhere(args, "protocol")
    runs = {}
    for one in said:
        words = bool(args.own_words) and load_protocol(one).texts is not None
        runs[one] = config_of(args, perturb=None, protocol=one, own_words=words)
    flags = {"--suite": "suite", "--tasks": "tasks", "--max-turns": "max_turns"}
    for flag, option in flags.items():
        values = {name: config.options()[option] or 30 for name, config in runs.items()}
        if len(set(values.values())) > 1:
            given = ", ".join(f"{name} {value}" for name, value in values.items())
            raise UserError(
                f"--over {args.over}: {flag} differs ({given[:200]}); give one for all, to compare in pairs"
            )
    return _by_folder(args, runs)


def _agent(own: AgentConfig, said: str) -> AgentConfig:
    """`own` with the agent of `NAME+option=value+...`."""
    from evalharness.agents.registry import agent_typed

    name, *options = said.split("+")
    pairs = dict(option.partition("=")[::2] for option in options)
    if any("=" not in option for option in options):
        raise UserError(f"--over {said}: an agent's option is NAME=VALUE: {EXAMPLE}")
    if agent_typed(name, pairs).name == "external":
        raise UserError("--over: an agent from outside is started with a run of its own; compare the runs")
    chosen = {"agent": name, "agent_option": pairs, "action_interface": "react"}
    return type(own).model_validate(own.model_dump() | chosen)
