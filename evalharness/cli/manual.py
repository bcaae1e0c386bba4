"""docs/commands.md, made from the commands themselves: `python -m evalharness.cli.manual > docs/commands.md`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from evalharness.cli import EXIT_STATUS, make_parser

_INTRODUCTION = """\
# Commands

Made from the commands' own help (`python -m evalharness.cli.manual > docs/commands.md`), which the test suite checks;
`evalharness COMMAND --help` says the same. Completion for bash, zsh and fish: [completion](#evalharness-completion).
"""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return _cell(parser._get_formatter()._expand_help(action)) if action.help else ""


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if isinstance(action.metavar, str):
        return f" {action.metavar}"
    return " " + ("\\|".join(map(str, action.choices)) if action.choices else action.dest.upper())


def _section(parser: argparse.ArgumentParser, depth: int) -> Iterator[str]:
    yield f"{'#' * depth} {parser.prog}\n"
    if parser.description:
        code = "  " in parser.description  # laid out by hand
        yield f"```text\n{parser.description.strip()}\n```\n" if code else f"{parser.description.strip()}\n"
    rows, below = [], []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below += list(dict.fromkeys(action.choices.values()))
        elif action.option_strings and action.dest != "help":
            names = ", ".join(f"`{name}`" for name in action.option_strings)
            rows.append(f"| {names}{_value(action).replace('<', '&lt;')} | {_help(parser, action)} |")
        elif not action.option_strings:
            name = _value(action).strip()
            many = " ..." if action.nargs in ("*", "+") else ""
            optional = action.nargs in ("?", "*")
            rows.append(f"| {f'[{name}{many}]' if optional else f'{name}{many}'} | {_help(parser, action)} |")
    if rows:
        yield "| | |\n|---|---|"
        yield "\n".join(rows) + "\n"
    for child in below:
        yield from _section(child, depth + 1)


def manual() -> str:
    """The page. The same on every Python: it is made from the arguments, not from argparse's layout of them."""
    parser = make_parser()
    lines = [_INTRODUCTION, "## Exit status\n", "| status | meaning |\n|---|---|"]
    lines += [f"| {status} | {meaning} |" for status, meaning in EXIT_STATUS.items()]
    lines.append("")
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in dict.fromkeys(action.choices.values()):
                lines += _section(child, 2)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(manual(), end="")
