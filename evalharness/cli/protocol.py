"""A protocol defines how a research group asks a model, reads its reply, samples, scores and averages. Play a protocol
with: evalharness run --protocol NAME ...
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import UserError
from evalharness.cli.common import add_json_option
from evalharness.cli.output import results_console, write_json
from evalharness.cli.parser import CommandParser, argument, subcommand

if TYPE_CHECKING:
    from rich.console import Console

    from evalharness.protocol.published import Protocol

HELP = "list, show and import other groups' protocols"


def add_options(parser: CommandParser) -> None:
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = subcommand(actions, "list", run_list, "list the protocols, and which prompt texts are imported")
    add_json_option(listing)
    show = subcommand(
        actions, "show", run_show, "show a protocol, its surprising rules, and how evalharness deviates"
    )
    argument(show, "name NAME|FILE.yaml", "a name from `list`, or your own file")
    add_json_option(show)
    bring = subcommand(
        actions, "import", run_import, "read a protocol's prompt texts from a checkout of its authors"
    )
    argument(bring, "name NAME", "the protocol")
    argument(bring, "path PATH", "checkout of the authors' repository", type=Path)
    add_json_option(bring)


def run_list(args: argparse.Namespace) -> int:
    from rich.text import Text

    from evalharness.base.terminal import plain_table, words
    from evalharness.protocol.published import DEFAULT, load_protocol, protocol_names

    table = plain_table(words("name"), words("what it is"), "turns", words("its prompt texts"), gap=2)
    rows = []
    for name in protocol_names():
        protocol = load_protocol(name)
        try:
            state = (
                "ours" if protocol.texts is None else "imported" if _read_texts(protocol) else "not imported"
            )
        except UserError:
            state = "damaged"
        label = f"{name} (default)" if name == DEFAULT else name
        table.add_row(Text(label), Text(protocol.title), str(protocol.turns), state)
        rows.append({"name": name, "title": protocol.title, "turns": protocol.turns, "texts": state})
    results_console(args).print(table)
    write_json(args.json, {"protocols": rows})
    return 0


def run_show(args: argparse.Namespace) -> int:
    from evalharness.protocol.published import load_protocol

    protocol = load_protocol(args.name)
    _print_protocol(results_console(args), protocol)
    write_json(args.json, {**protocol.model_dump(mode="json"), "sha256": protocol.sha256})
    return 0


def _read_texts(protocol: Protocol) -> Any:
    """Return the imported prompt texts of a protocol, with the source of the texts; None if nothing is imported."""
    from evalharness.protocol.published import module_of

    module = None if protocol.texts is None else module_of(protocol.texts)
    return None if module is None else module.all_imported(protocol.texts)


def _print_protocol(console: Console, protocol: Protocol) -> None:
    from evalharness.base.terminal import line
    from evalharness.protocol.published import module_of

    texts = _read_texts(protocol)
    options = " ".join(f"--agent-option {name}={value}" for name, value in protocol.options.items())
    stated = protocol.sampling.model_dump(exclude_none=True)
    rows = {
        "protocol": f"{protocol.name}: {protocol.title}",
        "source": protocol.source,
        "licence": protocol.licence,
        "agent": f"{protocol.agent} {options}",
        "turns": str(protocol.turns),
        "tasks": f"{protocol.tasks or 'all'}, suite {protocol.suite or 'as without a protocol'}",
        "sampling": ", ".join(f"{name} {value}" for name, value in stated.items()),
        "score": protocol.score,
        "averaging": protocol.averaging,
        "draw": f"{protocol.draw.games} games, with repetition" if protocol.draw else "",
    }
    if protocol.texts is not None and (module := module_of(protocol.texts)) is not None:
        rows["texts"] = (
            module.how_to_import(protocol.texts)
            if texts is None
            else f"imported {texts['imported']} from {texts['repository']}, sha256 {texts['sha256'][:12]}"
        )
    for name, value in rows.items():
        if value.strip():
            console.print(line(f"{name:10} {value}"), soft_wrap=True)
    for title, lines in (
        ("surprising rules", protocol.oddities),
        ("differences between this harness and the group's own code", protocol.differs),
    ):
        if lines:
            console.print(line(title, "bold"))
        for one in lines:
            console.print(line(f"- {one}"), soft_wrap=True)


def run_import(args: argparse.Namespace) -> int:
    """Read a protocol's prompt texts from a checkout of its authors' repository, and store them in the data folder with
    their hashes and the repository's licence. The files are parsed as data; no code in them is run."""
    from evalharness.protocol.published import load_protocol, module_of

    load_protocol(args.name)
    module = module_of(args.name)
    if module is None:
        raise UserError(f"data protocols import {args.name}: this protocol has no prompt texts to import")
    imported = module.import_texts(args.name, args.path)
    console = results_console(args)
    families = ", ".join(sorted(imported.families))
    console.print(f"{args.name}: prompt texts for {families}, in {imported.path}", soft_wrap=True)
    console.print(
        f"licence: {imported.licence or 'no file; see the README of the checkout'}",
        soft_wrap=True,
        markup=False,
    )
    for name, sha256 in imported.sources.items():
        console.print(f"  {sha256[:12]} {name}", soft_wrap=True)
    write_json(
        args.json,
        {
            "protocol": args.name,
            "file": str(imported.path),
            "licence": imported.licence,
            "sources": dict(imported.sources),
        },
    )
    return 0
