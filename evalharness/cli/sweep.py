"""Evaluate a model on one family, unperturbed and under each perturbation. Show success and progress of each run, and
paired tests against the unperturbed run. Run the same command again to continue; more names after --perturb extend the
study. docs/perturbations.md

With --over agent=A,B the runs differ in the agent, and each run is compared with the first run. docs/agents.md
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
        "a family (alfworld) or some of its tasks (alfworld:0-9); required, but with --over the default is all",
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
        "perturbations, or files with your own (default: the family's published perturbations, else all); see: "
        "evalharness data perturbations list",
        nargs="+",
    )
    add_dry_run_option(sweep)
    add_csv_option(sweep, "a row for each perturbation, for the average and for the deviation")
    add_run_options(parser, without=("perturb", "tasks"))
    parser.set_short_help(_USUAL, _EXAMPLES)


def run(args: argparse.Namespace) -> int:
    from evalharness.config import SelectionConfig, make_part, options_in

    in_file = options_in(args.config)
    if in_file.get("perturb") and not args.perturb:
        raise UserError(f"perturb in {args.config} is for a single run; a sweep needs --perturb NAME ...")
    if args.over:
        return run_agents(args)
    tasks = args.tasks or in_file.get("tasks")
    if not tasks:
        raise UserError("--tasks FAMILY is missing: a sweep over perturbations needs one family")
    args.tasks = make_part(SelectionConfig, {"tasks": tasks}).tasks
    return _run_perturbations(args)


def _run_perturbations(args: argparse.Namespace) -> int:
    from evalharness.records.files import STUDY
    from evalharness.records.store import lock_folder
    from evalharness.results.sweep import UNPERTURBED
    from evalharness.results.terminal.sweep import print_sweep
    from evalharness.runs.study import study_folder
    from evalharness.runs.study_results import load_played_runs, sweep_result

    runs = _make_columns(args)
    plain = runs[UNPERTURBED]
    folder = study_folder(plain, f"sweep-{_family(args)}")
    out = results_console(args)
    if args.dry_run:
        return dry_run_study(out, folder, runs, args)
    with lock_folder(folder, STUDY):
        outcome = play_study("sweep", folder, runs, args)
        columns = {name: run for name, run in load_played_runs(folder).items() if name in outcome.runs}
        if UNPERTURBED in columns:
            sweep = sweep_result(columns)
            print_sweep(out, sweep)
            write_csv(args.csv, sweep.rows())
            write_json(args.json, sweep.to_json())
        return end_study(out, folder, outcome)


def _family(args: argparse.Namespace) -> str:
    """Return the family of `--tasks`. Raises UserError for several families."""
    families = {part.strip().partition(":")[0].partition("/")[0] for part in args.tasks.split(",")}
    if len(families) > 1:
        raise UserError(f"--tasks {args.tasks}: a sweep over perturbations needs one family")
    return str(families.pop())


def _make_columns(args: argparse.Namespace) -> Runs:
    """Map "unperturbed" and each perturbation to its run. Raises UserError for an unknown family or perturbation."""
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

    runs = _make_agent_columns(args)
    return run_study(KIND, study_folder(next(iter(runs.values())), KIND), runs, args, print_incomplete=True)


def _make_agent_columns(args: argparse.Namespace) -> Runs:
    """Map folder names to runs. Raises UserError if `--over` is not a list of agents or protocols."""
    from evalharness.cli.options import config_of

    key, equals, values = args.over.partition("=")
    names = list(dict.fromkeys(filter(None, (part.strip() for part in values.split(",")))))
    if key.strip() == "protocol" and equals and len(names) > 1:
        return _make_protocol_columns(args, names)
    if key.strip() != "agent" or not equals or len(names) < 2:
        raise UserError(
            f"--over {args.over}: give two agents or more: --over {EXAMPLE}; or two protocols: --over protocol=A,B"
        )
    if args.agent or args.agent_option or args.perturb:
        given = "--perturb" if args.perturb else "--agent"
        raise UserError(
            f"--over and {given} exclude each other; write an agent's options after its name: {EXAMPLE}"
        )
    _refuse_in_file(args, "agent", "agent_option")
    config = config_of(args, perturb=None)
    return _use_folder_names(
        args, {name: replace(config, agent=_parse_agent(config.agent, name)) for name in names}
    )


def _refuse_in_file(args: argparse.Namespace, *options: str) -> None:
    """Raise UserError if the configuration file sets an option that `--over` would replace."""
    from evalharness.config import options_in

    in_file = options_in(args.config)
    conflicts = [f"{name} in {args.config}" for name in options if in_file.get(name)]
    if conflicts:
        raise UserError(f"--over {args.over} and {conflicts[0]} exclude each other")


def _use_folder_names(args: argparse.Namespace, runs: Runs) -> Runs:
    """Replace each name in `runs` by a folder name. Raises UserError if two runs would share a folder."""
    by_folder = {re.sub(r"[^\w.+=-]+", "-", name): run for name, run in runs.items()}
    if len(by_folder) < len(runs):
        raise UserError(f"--over {args.over}: two names give the same folder name; rename a file")
    return by_folder


def _make_protocol_columns(args: argparse.Namespace, names: list[str]) -> Runs:
    """Map folder names to the protocols' runs. Raises UserError if tasks or turns differ: such runs cannot be
    paired."""
    from evalharness.cli.options import config_of
    from evalharness.protocol.published import load_protocol

    if args.protocol or args.perturb:
        given = "--perturb" if args.perturb else "--protocol"
        raise UserError(f"--over {args.over} and {given} exclude each other")
    _refuse_in_file(args, "protocol")
    runs = {}
    for name in names:
        words = bool(args.own_words) and load_protocol(name).texts is not None
        runs[name] = config_of(args, perturb=None, protocol=name, own_words=words)
    flags = {"--suite": "suite", "--tasks": "tasks", "--max-turns": "max_turns"}
    for flag, option in flags.items():
        values = {name: config.options()[option] or 30 for name, config in runs.items()}
        if len(set(values.values())) > 1:
            given = ", ".join(f"{name} {value}" for name, value in values.items())
            raise UserError(
                f"--over {args.over}: {flag} differs ({given[:200]}); give {flag}, so that runs can be paired"
            )
    return _use_folder_names(args, runs)


def _parse_agent(own: AgentConfig, text: str) -> AgentConfig:
    """Return `own` with the agent that `text` describes: `NAME+option=value+...`."""
    from evalharness.agents.registry import load_agent

    name, *options = text.split("+")
    pairs = dict(option.partition("=")[::2] for option in options)
    if any("=" not in option for option in options):
        raise UserError(f"--over {text}: an agent's option is NAME=VALUE: {EXAMPLE}")
    if load_agent(name, pairs).name == "external":
        raise UserError("--over: an external agent needs a run of its own; compare the runs")
    chosen = {"agent": name, "agent_option": pairs, "action_interface": "react"}
    return type(own).model_validate(own.model_dump() | chosen)
