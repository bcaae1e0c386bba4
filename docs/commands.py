"""Hook of mkdocs (`mkdocs.yml`): the site gets a page of each command, with what its `--help-all` shows."""

from __future__ import annotations

import os
from typing import Any

from mkdocs.structure.files import File

from evalharness.cli import find_commands, make_parser
from evalharness.cli.parser import CommandParser, subcommands, walk_commands

PAGES = [{"All commands": "cli/index.md"}, *({name: f"cli/{name}.md"} for name in find_commands())]


def on_config(config: Any) -> None:
    reference = next(section["Reference"] for section in config["nav"] if "Reference" in section)
    reference.insert(0, {"Command line": PAGES})


def on_files(files: Any, config: Any) -> None:
    os.environ["COLUMNS"] = "100"
    parser = make_parser()
    links = " · ".join(f"[{name}]({name}.md)" for name in find_commands())
    index = f"# Command line\n\n{links}\n\n```text\n{parser.format_help()}```\n"
    files.append(File.generated(config, "cli/index.md", content=index))
    for name, command in subcommands(parser).items():
        text = "".join(_section(each) for each in walk_commands(command))
        files.append(File.generated(config, f"cli/{name}.md", content=text))


def _section(parser: CommandParser) -> str:
    level = parser.prog.count(" ")
    return f"{'#' * level} {parser.prog}\n\n```text\n{parser.format_help()}```\n\n"
