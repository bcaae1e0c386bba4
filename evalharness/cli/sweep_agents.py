"""`evalharness sweep --over agent=A,B` or `protocol=A,B`: a model under several agents or protocols, as one study."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from evalharness.cli.common import write_csv, write_json
from evalharness.cli.studies import dry_run_study, end_study, play_study

if TYPE_CHECKING:
    from evalharness.config import AgentConfig
    from evalharness.runs.study import Runs

KIND = "agents"
EXAMPLE = "agent=react,act,window+history=4"


def run_agents(args: argparse.Namespace) -> int:
    from evalharness.base.terminal import make_console
    from evalharness.results.agent_study import AgentStudy
    from evalharness.runs.study import study_folder
    from evalharness.runs.study_results import print_study

    runs = _columns(args)
    folder = study_folder(next(iter(runs.values())), KIND)
    out = make_console(stderr="-" in (args.json, args.csv))
    if args.dry_run:
        return dry_run_study(out, folder, runs, args)
    played = play_study(KIND, folder, runs, args)
    study = print_study(out, folder)
    if isinstance(study, AgentStudy):
        write_csv(args.csv, study.rows())
        write_json(args.json, study.to_json())
    return end_study(out, folder, played)


def _columns(args: argparse.Namespace) -> Runs:
    """Folder's name -> its run. Raises UserError for what is no list of agents."""
    from evalharness.base.errors import UserError
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
    config = config_of(args, perturb=None)
    runs = {re.sub(r"[^\w.+=-]+", "-", one): replace(config, agent=_agent(config.agent, one)) for one in said}
    if len(runs) < len(said):
        raise UserError(f"--over {args.over}: two of the agents would share a folder; rename a file")
    return runs


def _protocols(args: argparse.Namespace, said: list[str]) -> Runs:
    """Each protocol plays the same tasks with as many turns: else nothing could be paired. Raises UserError."""
    from evalharness.base.errors import UserError
    from evalharness.cli.options import config_of
    from evalharness.protocol.published import load_protocol

    if args.protocol or args.perturb:
        given = "--perturb" if args.perturb else "--protocol"
        raise UserError(f"--over {args.over} and {given} exclude each other")
    runs = {}
    for one in said:
        words = bool(args.own_words) and load_protocol(one).texts is not None
        name = re.sub(r"[^\w.+=-]+", "-", one)
        runs[name] = config_of(args, perturb=None, protocol=one, own_words=words)
    flags = {"--suite": "suite", "--tasks": "tasks", "--max-turns": "max_turns"}
    for flag, option in flags.items():
        values = {name: config.options()[option] or 30 for name, config in runs.items()}
        if len(set(values.values())) > 1:
            told = ", ".join(f"{name} {value}" for name, value in values.items())
            raise UserError(
                f"--over {args.over}: {flag} differs ({told[:200]}); give one for all, to compare in pairs"
            )
    if len(runs) < len(said):
        raise UserError(f"--over {args.over}: two of the protocols would share a folder; rename a file")
    return runs


def _agent(own: AgentConfig, said: str) -> AgentConfig:
    """`own` with the agent of `NAME+option=value+...`."""
    from evalharness.agents.registry import agent_named
    from evalharness.base.errors import UserError

    name, *options = said.split("+")
    pairs = dict(option.partition("=")[::2] for option in options)
    if any("=" not in option for option in options):
        raise UserError(f"--over {said}: an agent's option is NAME=VALUE: {EXAMPLE}")
    if agent_named(name, pairs).name == "external":
        raise UserError("--over: an agent from outside is started with a run of its own; compare the runs")
    chosen = {"agent": name, "agent_option": pairs, "action_interface": "react"}
    return type(own).model_validate(own.model_dump() | chosen)
