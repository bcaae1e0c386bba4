"""Parsers whose options may be added late, and whose errors cannot steer a terminal.

Options made of the configuration import pydantic and numpy. `evalharness --help` and the other commands do not wait for
them.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, TypeAlias

from evalharness.base.errors import close_to

_USAGE_LINES = 6
"""A longer usage is not shown before an error."""
AddOptions = Callable[["CommandParser"], None]
Commands: TypeAlias = "argparse._SubParsersAction[CommandParser]"
Run = Callable[[argparse.Namespace], int]
"""Carries a command out; the exit status."""
_MOST = 10**12
"""A larger number than any that a person means: it overflows what is computed with it, or takes hours."""


def whole_number(text: str) -> int:
    """For options. Raises ArgumentTypeError."""
    if not re.fullmatch(r"\s*[+-]?\d[\d_]{,12}\s*", text) or abs(value := int(text)) > _MOST:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number (up to {_MOST:,})")
    return value


def number(text: str) -> float:
    """For options. Raises ArgumentTypeError."""
    try:
        if abs(value := float(text)) <= _MOST:  # NaN is not
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number (up to {_MOST:,})")


def _port(text: str) -> int:
    """Of this machine; 0 for a free one."""
    if not 0 <= (value := whole_number(text)) <= 65535:
        raise argparse.ArgumentTypeError(f"{value} is not a port, which is a number up to 65535")
    return value


_TYPES: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("N", "R", "A"), whole_number),
    **dict.fromkeys(("X", "T", "P", "GB", "SHARE", "MINUTES"), number),
    "PORT": _port,
    **dict.fromkeys(("DIR", "FILE", "FILE.jsonl", "DIR|FILE", "FOLDER", "RUN", "RUN|DATA", "SOURCE"), Path),
}
"""Metavar -> what the value is; of every other one it is a text."""


def argument(parser: argparse._ActionsContainer, said: str, help: str, **more: Any) -> None:
    """Add an argument as its usage says it: `-n --samples N`, `--by {progress,success}`, `--force`; `runs RUN` for one
    without a flag.

    Its metavar tells its type; an option without metavar and choices is a switch; a default that the help does not
    name is added to it. `more`: as argparse has it.
    """
    words = said.split()
    names = [word for word in words if word.startswith("-")] or words[:1]
    metavar = " ".join(words[len(names) :])
    if metavar.startswith("{"):
        more["choices"] = tuple(metavar.strip("{}").split(","))
    elif metavar:
        more = {"metavar": metavar, "type": _TYPES.get(metavar), **more}
    elif "choices" not in more:
        more = {"action": "store_true", **more}
    parser.add_argument(*names, help=with_default(help, more.get("default")), **more)


def with_default(text: str, default: Any) -> str:
    """A help with the default where there is one worth a word and the text does not name it."""
    if "default" in text or isinstance(default, bool) or default in (None, "", (), {}, []):
        return text
    shown = f"{default:g}" if isinstance(default, float) else str(default)  # as a person would give it
    return f"{text} (default: {shown})"


class _WholeHelp(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *args: Any) -> None:
        parser._print_message(parser.format_help(), sys.stdout)
        parser.exit()


class CommandParser(argparse.ArgumentParser):
    """The commands' parsers are of the same class as the program's, which argparse sees to."""

    _late: AddOptions | None = None
    loose: str | None = None
    """The argument that takes words behind an option as well: argparse fills a `*` with the first ones alone."""
    beside: dict[str, CommandParser]
    """Commands that stand in the place of this one's arguments: `leaderboard submit` beside `leaderboard RUN...`."""

    def __init__(self, *args: Any, **more: Any) -> None:
        # A shortened name would mean another option as soon as one with the same beginning is added.
        super().__init__(*args, **{"allow_abbrev": False, **more})
        self.beside = {}
        self._usual: tuple[str, ...] = ()
        self._examples = ""

    def add_beside(self, name: str, module: ModuleType) -> None:
        """Add the command that a first word of `name` means: a module as `add_command` takes it."""
        self.beside[name] = CommandParser(prog=f"{self.prog} {name}", **_described(module))
        self.beside[name].set_defaults(run=module.run)
        self.beside[name].add_late(module.add_options)

    def add_late(self, add_options: AddOptions) -> None:
        """`add_options` is called once, when this command is given or `complete` is called."""
        self._late = add_options

    def set_short_help(self, usual: str, examples: str) -> None:
        """`--help` shows these options alone, and the examples; `--help-all` shows everything."""
        self._usual, self._examples = tuple(usual.split()), examples
        self.add_argument(
            "--help-all", action=_WholeHelp, nargs=0, dest=argparse.SUPPRESS, default=argparse.SUPPRESS,
            help="show every option",
        )  # fmt: skip

    def format_short_help(self) -> str:
        """The whole help where no short one was set."""
        self.complete()
        if not self._usual:
            return self.format_help()
        formatter = self._get_formatter()
        arguments = [action for action in self._actions if not action.option_strings]
        formatter.add_usage(f"{self.prog} [OPTIONS]{' ...' * bool(arguments)}", (), ())
        formatter.add_text(self.description)
        formatter.start_section("the options that most people use")
        known = {name: action for action in self._actions for name in action.option_strings}
        formatter.add_arguments([*arguments, *(known[name] for name in self._usual)])
        formatter.end_section()
        shown = formatter.format_help()
        return f"{shown}\nexamples:\n{self._examples}\nall options: {self.prog} --help-all\n"

    def print_help(self, file: Any = None) -> None:
        """What `--help` asks for."""
        self._print_message(self.format_short_help(), file or sys.stdout)

    def complete(self) -> None:
        add_options, self._late = self._late, None
        if add_options is not None:
            add_options(self)

    def error(self, message: str) -> NoReturn:
        """What is refused can hold anything: it is shown, not obeyed. Last stands what is wrong, so that a long usage
        does not push it off the screen."""
        from evalharness.base.text import printable

        usage = self.format_usage()
        if usage.count("\n") > _USAGE_LINES:
            usage = f"usage: {self.prog} [OPTIONS]; see: {self.prog} --help\n"
        self._print_message(usage, sys.stderr)
        self.exit(2, f"{self.prog}: error: {printable(message, single_line=True)}\n")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """A command refuses what it does not know itself: the program no longer knows which options it has."""
        self.complete()
        if args and args[0] in self.beside:
            return self.beside[args[0]].parse_known_args(args[1:], namespace)
        found, unknown = super().parse_known_args(args, namespace)
        if self.loose is not None:
            words = [word for word in unknown if not word.startswith("-")]
            setattr(found, self.loose, [*getattr(found, self.loose), *words])
            unknown = [word for word in unknown if word.startswith("-")]
        if unknown and not subcommands(self):
            self.error(self._unrecognized(unknown))
        return found, unknown

    def _unrecognized(self, words: Sequence[str]) -> str:
        """`unrecognized arguments: --modle; did you mean --model?`"""
        known = [name for name in self._option_string_actions if name.startswith("--")]
        given = [word.partition("=")[0] for word in words if word.startswith("--")]
        meant = [close for word in given if (close := close_to(word, known)) is not None]
        return f"unrecognized arguments: {' '.join(words)}" + (
            f"; did you mean {' '.join(meant)}?" if meant else ""
        )

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """A word that is close to a command or to a choice is answered with that one, and not with all of them."""
        refused = action.choices is not None and value not in action.choices
        if refused and (close := close_to(str(value), [str(choice) for choice in action.choices or ()])):
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; did you mean {close!r}?")
        super()._check_value(action, value)


def add_command(commands: Commands, name: str, module: ModuleType, *, listed: bool = True) -> None:
    """The command that a module is: its HELP, its docstring (DESCRIPTION where that would lose an indentation that all
    its lines but the first have), `add_options`, and `run` if it is more than the commands below it.

    `listed`: whether the help above it lists it.
    """
    description = getattr(module, "DESCRIPTION", module)
    more = {"help": module.HELP} if listed else {}
    parser = commands.add_parser(name, **more, **_described(description))
    parser.add_late(module.add_options)
    if hasattr(module, "run"):
        parser.set_defaults(run=module.run)


def subcommand(
    commands: Commands, name: str, run: Run, help: str, description: str | None = None
) -> CommandParser:
    """A command below another one. `description`: where it is not `run`'s docstring."""
    parser = commands.add_parser(name, help=help, **_described(description or run))
    parser.set_defaults(run=run)
    return parser


def _described(by: ModuleType | Run | str) -> dict[str, Any]:
    """The description of a command: a text, or a docstring. One with columns keeps its lines."""
    text = by if isinstance(by, str) else inspect.getdoc(by)
    in_columns = text is not None and "  " in text
    formatter = argparse.RawDescriptionHelpFormatter if in_columns else argparse.HelpFormatter
    return {"description": text, "formatter_class": formatter}


def subcommands(parser: CommandParser) -> dict[str, CommandParser]:
    """Name -> parser, in the order in which help lists them."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def children(parser: CommandParser) -> dict[str, CommandParser]:
    """Commands of a command, those beside its arguments too."""
    return subcommands(parser) | parser.beside


def walk_commands(parser: CommandParser) -> Iterator[CommandParser]:
    """A parser and those of all commands below it; add their late options."""
    parser.complete()
    yield parser
    for child in children(parser).values():
        yield from walk_commands(child)
