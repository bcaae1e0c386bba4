"""docs/cli/, a page a command, made from the parsers: `python -m evalharness.cli.reference docs/cli`.

The options are written out here rather than taken from argparse's help: its layout differs between Python versions.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from evalharness.cli import COMMANDS, EXIT_STATUS, make_parser
from evalharness.cli.common import add_data_option, add_json_option
from evalharness.cli.options import add_config_option, help_of, run_options
from evalharness.cli.parser import CommandParser, children, subcommands
from evalharness.config import OPTIONS, option_of

_HEAD = """\
# Command line

Made by `make docs` from what `evalharness COMMAND --help` says.
"""
_OPTIONS = """\
## Options of a run

`run`, `sweep`, `bon`, `checkpoints` and `watch-training` take them as flags. `evalharness.run` and a YAML file
(`--config FILE`) take them by name: `max_turns` for `--max-turns`. A run is continued only while all that results
depend on stays as it is (`chat_template` and `prompts`: the files' content); `samples` may grow.
"""
_MANY = """\
## Options of many commands

A command that has one of these says only its name.
"""
_USUAL = (argparse._HelpAction, argparse._VersionAction)
_ALIKE = 3
"""From so many options on that two commands have alike, the second refers to the first."""
_LONG = 15
"""So does an option whose item has so many words."""


def _escaped(text: str) -> str:
    """Text of a help as Markdown."""
    text = " ".join(text.replace("%%", "%").split())
    return re.sub(r"([\\<>*_\[\]])", r"\\\1", text)


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


def _usage(name: str, parser: CommandParser) -> str:
    words = [name]
    actions = [a for a in parser._actions if not isinstance(a, _USUAL) and a.help != argparse.SUPPRESS]
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


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Arguments and options in the order of the help's groups, but those of every command."""
    found = [action for group in parser._action_groups for action in group._group_actions]
    return [
        a
        for a in found
        if not isinstance(a, _USUAL) and a.help != argparse.SUPPRESS and not _is_subcommands(a)
    ]


def _item(action: argparse.Action) -> str:
    return f"* {_flag(action)}: {_escaped(action.help or '')}"


def _of_a_run(action: argparse.Action) -> str:
    """An option that a command took over from `run`: its flag, with the command's own default; else nothing."""
    if action.dest not in OPTIONS or not action.option_strings:
        return ""
    text, _, default = str(action.help).replace("%%", "%").rpartition(" (default:")
    known, _, usual = help_of(OPTIONS[action.dest]).rpartition(" (default:")
    flag = f"`{action.option_strings[-1]}`"
    if (text or default) != (known or usual):
        return ""
    return flag if default == usual else f"{flag} (default:{default}"


def _of_many() -> list[str]:
    """Options that many commands have alike."""
    parser = argparse.ArgumentParser()
    add_config_option(parser)
    add_data_option(parser)
    add_json_option(parser)
    return [_item(action) for action in _actions(parser)]


class _Sections:
    """The sections of commands. Described once: options of many commands, those of `run`, and those that two have
    alike."""

    def __init__(self) -> None:
        self.first = dict.fromkeys(_of_many(), "")
        """Item -> the command that has it first; "" for many."""

    def of(self, name: str, parser: CommandParser, level: int) -> Iterator[str]:
        yield f"{'#' * level} {name}"
        yield f"    {_usage(name, parser)}"
        if parser.description:
            raw = parser.formatter_class is argparse.RawDescriptionHelpFormatter
            text = parser.description.strip().replace("%%", "%")
            yield f"```text\n{text}\n```" if raw else _escaped(text)
        yield from self._options(name, parser)
        for child, below in children(parser).items():
            yield from self.of(f"{name} {child}", below, level + 1)

    def _options(self, name: str, parser: CommandParser) -> Iterator[str]:
        shared = run_options(parser)
        known = {
            _item(action): action.option_strings[-1] for action in _actions(parser) if action.option_strings
        }
        sources = Counter(self.first[item] for item in known if item in self.first)
        elsewhere = {
            item
            for item in known
            if sources[source := self.first.get(item, name)] >= _ALIKE
            or not source
            or (source != name and len(item.split()) >= _LONG)
        }
        own = [_item(action) for action in _actions(parser) if not _of_a_run(action)]
        items = [item for item in own if item not in elsewhere]
        if items:
            yield "\n".join(items)
        if shared:
            flags = [name for name, field in OPTIONS.items() if not option_of(field).no_flag]
            but = ", ".join(f"`--{name.replace('_', '-')}`" for name in flags if name not in shared)
            yield "All [options of a run](index.md#options-of-a-run)" + (f" but {but}." if but else ".")
        elif of_a_run := [text for action in _actions(parser) if (text := _of_a_run(action))]:
            yield f"As in [`run`](index.md#options-of-a-run): {', '.join(of_a_run)}."
        for source in sources:
            again = [f"`{known[item]}`" for item in own if item in elsewhere and self.first[item] == source]
            if again and source:
                link = f"{source.split()[1]}.md#{source.replace(' ', '-')}"
                yield f"As in [`{source.removeprefix('evalharness ')}`]({link}): {', '.join(again)}."
            elif again:
                yield f"[Also](index.md#options-of-many-commands) {', '.join(again)}."
        self.first |= {item: name for item in known if item not in self.first}


def _options_of_a_run(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Every option of a run."""
    yield _OPTIONS.strip()
    flags = run_options(parser)
    for operational, heading in enumerate(("Results depend on these:", "Results do not depend on these:")):
        yield heading
        yield "\n".join(
            f"* {_flag(flags[name]) if name in flags else f'`{name}`'}: {_escaped(help_of(field))}"
            for name, field in OPTIONS.items()
            if option_of(field).operational == bool(operational)
        )


def pages() -> dict[str, str]:
    """File name -> page: `index.md`, and one of each command."""
    parser = make_parser()
    below = subcommands(parser)
    index = [
        _HEAD.strip(),
        " · ".join(f"[`{name}`]({name}.md)" for name in COMMANDS),
        "## Exit status",
        "\n".join(f"* `{code}`: {_escaped(what)}" for code, what in EXIT_STATUS.items()),
        "`--debug`, before the command, shows the traceback of an error.",
        _MANY.strip(),
        "\n".join(_of_many()),
        *_options_of_a_run(below["run"]),
    ]
    sections = _Sections()
    parts = {name: list(sections.of(f"evalharness {name}", below[name], 1)) for name in COMMANDS}
    written = {"index": index, **parts}
    return {f"{name}.md": "\n\n".join(written[name]) + "\n" for name in written}


def write_pages(folder: Path) -> None:
    """Pages of commands that are gone are removed."""
    written = pages()
    folder.mkdir(exist_ok=True)
    for old in set(folder.glob("*.md")) - {folder / name for name in written}:
        old.unlink()
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
