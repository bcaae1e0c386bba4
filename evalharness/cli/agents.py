"""List the agents. An agent writes the model's prompt at each turn and
reads the action in its reply (docs/agents.md).

  evalharness run --agent NAME --agent-option OPTION=VALUE ...
  evalharness run --agent FILE.py:Class ...      your own agent
"""

from __future__ import annotations

import argparse

from evalharness.cli.common import add_json_option
from evalharness.cli.output import results_console, write_json
from evalharness.cli.parser import argument

HELP = "list agents and their options"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "agent AGENT", "show only this agent: NAME, module:Class or FILE.py:Class", nargs="?")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from inspect import getdoc

    from rich.text import Text

    from evalharness.agents.registry import load_agent, names
    from evalharness.base.terminal import plain_table, words

    table = plain_table(words("agent"), words("what it does, and its options"), gap=2)
    agents = []
    for name in [args.agent] if args.agent else names():
        kind = load_agent(name).kind
        description = " ".join((getdoc(kind) or "").split("\n\n")[0].split())
        options = {
            option: {"default": field.default, "help": " ".join((field.description or "").split())}
            for option, field in kind.Options.model_fields.items()
        }
        lines = [
            description,
            *(f"  {option}={about['default']}: {about['help']}" for option, about in options.items()),
        ]
        table.add_row(Text(name), Text("\n".join(lines)))
        agents.append(
            {"agent": name, "version": kind.version, "description": description, "options": options}
        )
    results_console(args).print(table)
    write_json(args.json, {"agents": agents})
    return 0
