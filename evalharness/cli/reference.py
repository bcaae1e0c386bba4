"""docs/cli.md, made from the parsers: `python -m evalharness.cli.reference > docs/cli.md`.

The options are written out here rather than taken from argparse's help: its layout differs between Python versions.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from evalharness.cli import COMMANDS, EXIT_STATUS, make_parser
from evalharness.cli.options import help_of, run_options
from evalharness.cli.parser import CommandParser
from evalharness.config import RunConfig, option_of

_HEAD = """\
# Command line

Made from the commands' own help by `python -m evalharness.cli.reference`; the test suite checks that it is up to date.
`evalharness COMMAND --help` says the same.
"""
_OPTIONS = """\
## Options of a run

`run`, `sweep` and `bon` take them as flags; a YAML file (`--config FILE`) and `evalharness.run` take them by name.
A run is continued only while everything that results depend on stays as it is; `samples` may grow.
"""
_USUAL = ("help", "version")


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Name -> parser, in the order in which help lists them."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _escaped(text: str) -> str:
    """Text of a help as Markdown in a table's cell."""
    text = " ".join(text.replace("%%", "%").split())
    return re.sub(r"([\\|<>*_\[\]])", r"\\\1", text)


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if isinstance(action.metavar, str):
        name = action.metavar
    elif action.choices is not None:
        name = "{" + ",".join(map(str, action.choices)) + "}"
    else:
        name = action.dest.upper() if action.option_strings else action.dest
    return {"+": f"{name} [{name}...]", "*": f"[{name}...]", "?": f"[{name}]"}.get(str(action.nargs), name)


def _usage(name: str, parser: argparse.ArgumentParser) -> str:
    words = [name]
    actions = [a for a in parser._actions if a.dest not in _USUAL and a.help != argparse.SUPPRESS]
    options = [a for a in actions if a.option_strings]
    words += [f"{a.option_strings[-1]} {_value(a)}".strip() for a in options if a.required]
    if any(not a.required for a in options):
        words.append("[OPTIONS]")
    words += [_value(a) for a in actions if not a.option_strings and not _is_subcommands(a)]
    if subcommands(parser):
        words.append("COMMAND")
    return " ".join(words)


def _is_subcommands(action: argparse.Action) -> bool:
    return isinstance(action, argparse._SubParsersAction)


def _flag(action: argparse.Action) -> str:
    value = _value(action)
    names = ", ".join(f"`{option}`" for option in action.option_strings)
    return f"{names} `{value}`" if names and value else names or f"`{value}`"


def _section(name: str, parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield f"{'#' * level} {name}"
    yield f"    {_usage(name, parser)}"
    if parser.description:
        raw = parser.formatter_class is argparse.RawDescriptionHelpFormatter
        text = parser.description.strip().replace("%%", "%")
        yield f"```text\n{text}\n```" if raw else _escaped(text)
    rows, shared = [], run_options(parser).values()
    for group in parser._action_groups:
        for action in group._group_actions:
            if action.dest in _USUAL or action.help == argparse.SUPPRESS or _is_subcommands(action):
                continue
            if action not in shared:
                rows.append(f"| {_flag(action)} | {_escaped(action.help or '')} |")
    if shared:
        yield "All [options of a run](#options-of-a-run), and:"
    if rows:
        yield "\n".join(["| option | what |", "|---|---|", *rows])
    beside = parser.beside if isinstance(parser, CommandParser) else {}
    for child, below in (subcommands(parser) | beside).items():
        yield from _section(f"{name} {child}", below, level + 1)


def _options_of_a_run(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Every field of `RunConfig`."""
    yield _OPTIONS.strip()
    flags, rows = run_options(parser), []
    for name, field in RunConfig.model_fields.items():
        option = option_of(field)
        depend = "no" if option.operational else "by content" if option.by_content else "yes"
        flag = _flag(flags[name]) if name in flags else ""
        rows.append(f"| `{name}` | {flag} | {depend} | {_escaped(help_of(field))} |")
    yield "\n".join(["| name | flag | results depend on it | what |", "|---|---|---|---|", *rows])


def page() -> str:
    """The whole page."""
    parser = make_parser()
    below = subcommands(parser)
    parts = [
        _HEAD.strip(),
        "## Exit status",
        "\n".join(
            ["| | |", "|---|---|", *(f"| {code} | {_escaped(what)} |" for code, what in EXIT_STATUS.items())]
        ),
        "`--debug`, before the command, shows the traceback of an error.",
    ]
    for name in COMMANDS:
        parts += _section(f"evalharness {name}", below[name], 2)
        if name == "run":
            parts += _options_of_a_run(below[name])
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    print(page(), end="")
