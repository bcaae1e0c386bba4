"""A perturbation changes the wording of actions: in the prompt, the worked example, the observations and the parser.
Use it with: evalharness run --perturb NAME (or NAME+NAME) ...
"""

from __future__ import annotations

import argparse
import difflib
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError, nearest
from evalharness.cli.common import add_json_option, require_family
from evalharness.cli.output import results_console, write_json
from evalharness.cli.parser import CommandParser, argument, subcommand

if TYPE_CHECKING:
    from evalharness.envs.base import Perturbation

HELP = "list and show perturbations of actions"


def _format_recalled(perturbation: Perturbation) -> str:
    return ", from memory: wording not checked" if perturbation.recalled else ""


def add_options(parser: CommandParser) -> None:
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = subcommand(actions, "list", run_list, "list the perturbations")
    argument(listing, "family FAMILY", "list only the perturbations of this family", nargs="?")
    add_json_option(listing)
    show = subcommand(actions, "show", run_show, "actions and prompt before and after, as a diff")
    argument(show, "family FAMILY", "alfworld, babyai, ...")
    argument(show, "name NAME[+NAME]|FILE.yaml", "a name from `list`, or your file; join several with +")
    argument(show, "--kind KIND", "show the prompt of this kind of task, such as a PDDL domain")
    add_json_option(show)


def run_list(args: argparse.Namespace) -> int:
    from rich.table import Column

    from evalharness.base.terminal import plain_table, words
    from evalharness.envs import specs

    columns = (Column("name", no_wrap=True), words("what is different"), words("source"))
    table = plain_table("family", *columns, gap=2)
    rows = []
    families = specs() if args.family is None else {args.family: require_family(args.family)}
    for family, spec in families.items():
        for name, how in spec.actions.wording.perturbations.items():
            rows.append(
                {
                    "family": family,
                    "name": name,
                    "description": how.description,
                    "source": how.source,
                    "recalled": how.recalled,
                }
            )
            table.add_row(family, name, how.description, how.source + _format_recalled(how))
    results_console(args).print(table)
    write_json(args.json, rows)
    return 0


def run_show(args: argparse.Namespace) -> int:
    from evalharness.protocol.drawn import find_surface
    from evalharness.protocol.perturbation_names import read_files
    from evalharness.protocol.prompt import load_prompt

    spec = require_family(args.family)
    surface = find_surface(spec, read_files(args.name)[0])
    prompt = load_prompt(spec)
    kind = args.kind
    if kind is not None and kind not in prompt.variants:
        raise UserError(f"--kind {kind}: this kind has no own prompt{nearest(kind, sorted(prompt.variants))}")
    if kind is None and prompt.example is None and prompt.variants:
        kind = next(iter(prompt.variants))
    before = prompt.for_kind(kind or "")
    after = surface.prompt(before)
    actions = {
        name: {"before": spec.actions.templates[name], "after": surface.perturbed.templates[name]}
        for name in surface.changed
    }
    texts = {
        "before": before.messages(surface.canonical, "...", "...")[1]["content"],
        "after": after.messages(surface.perturbed, "...", "...")[1]["content"],
    }
    console = results_console(args)
    console.print(f"{spec.title}, {surface.name}: {surface.perturbation.description}")
    source = surface.perturbation.source + _format_recalled(surface.perturbation)
    console.print(f"source: {source}", style="dim")
    if kind:
        console.print(f"prompt of {kind}", style="dim")
    for both in actions.values():
        console.print(f"{both['before']} -> {both['after']}")
    before_lines, after_lines = texts["before"].splitlines(), texts["after"].splitlines()
    for line in difflib.unified_diff(
        before_lines, after_lines, "prompt", "reworded prompt", lineterm="", n=1
    ):
        console.print(line)
    result = {"family": spec.family, "name": surface.name, "kind": kind, "actions": actions, "prompt": texts}
    write_json(args.json, result)
    return 0
