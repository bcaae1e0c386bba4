"""Parsers that escape control characters in error messages, and that can add a command's options late.

Options of the configuration import pydantic and numpy, which `evalharness --help` and some commands do not need."""

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
"""A usage text with more lines is not printed before an error."""
AddOptions = Callable[["CommandParser"], None]
Commands: TypeAlias = "argparse._SubParsersAction[CommandParser]"
Run = Callable[[argparse.Namespace], int]
"""Runs a command and returns the exit status."""
_MOST = 10**12
"""Largest number that an option accepts. A larger number is a mistake: it would overflow or take hours."""


def whole_number(text: str) -> int:
    """Parse a whole number of an option. Raises ArgumentTypeError."""
    if not re.fullmatch(r"\s*[+-]?\d[\d_]{,12}\s*", text) or abs(value := int(text)) > _MOST:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number (up to {_MOST:,})")
    return value


def number(text: str) -> float:
    """Parse a number of an option. Raises ArgumentTypeError."""
    try:
        if abs(value := float(text)) <= _MOST:  # False for NaN
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number (up to {_MOST:,})")


def _port(text: str) -> int:
    """Parse a port of this machine; 0 means a free one."""
    if not 0 <= (value := whole_number(text)) <= 65535:
        raise argparse.ArgumentTypeError(f"{value} is not a port: give a number up to 65535")
    return value


_TYPES: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("N", "R", "A"), whole_number),
    **dict.fromkeys(("X", "T", "P", "GB", "SHARE", "MINUTES"), number),
    "PORT": _port,
    **dict.fromkeys(("DIR", "FILE", "FILE.jsonl", "DIR|FILE", "FOLDER", "RUN", "RUN|DATA", "SOURCE"), Path),
}
"""Metavar -> function that parses the value. The value of any other metavar is a text."""


def argument(parser: argparse._ActionsContainer, usage: str, help: str, **more: Any) -> None:
    """Add an argument from its usage: `-n --samples N`, `--by {progress,success}`, `--force`, or `runs RUN` without a
    flag.

    The metavar determines the type; an option without metavar and choices is a switch. The default is appended
    to the help if the help lacks it. `more`: further arguments of `add_argument`.
    """
    words = usage.split()
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
    """Add the default to a help text without the word "default", unless the default is empty or a boolean."""
    if "default" in text or isinstance(default, bool) or default in (None, "", (), {}, []):
        return text
    value = f"{default:g}" if isinstance(default, float) else str(default)
    return f"{text} (default: {value})"


class _WholeHelp(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *args: Any) -> None:
        parser._print_message(parser.format_help(), sys.stdout)
        parser.exit()


class CommandParser(argparse.ArgumentParser):
    """The parser of the program, and of each command."""

    _late: AddOptions | None = None
    loose: str | None = None
    """Name of the list argument that also gets the words after an option; in argparse an option ends the list."""
    beside: dict[str, CommandParser]
    """Name -> parser of a command that the first argument can name: `judge label` next to `judge RUN...`."""

    def __init__(self, *args: Any, **more: Any) -> None:
        # Refuse abbreviations: `--sam` could later mean a new option that begins with `--sam`.
        super().__init__(*args, **{"allow_abbrev": False, **more})
        self.beside = {}
        self._usual: tuple[str, ...] = ()
        self._examples = ""

    def add_beside(self, name: str, module: ModuleType) -> None:
        """Add a command that is called if the first argument is `name`. `module`: see `add_command`."""
        self.beside[name] = CommandParser(prog=f"{self.prog} {name}", **_description_of(module))
        self.beside[name].set_defaults(run=module.run)
        self.beside[name].add_late(module.add_options)

    def add_late(self, add_options: AddOptions) -> None:
        """Store `add_options`: `complete` calls it once, when the command is parsed or its help is printed."""
        self._late = add_options

    def set_short_help(self, usual: str, examples: str) -> None:
        """Let `--help` show only the options in `usual` and the examples. Add `--help-all`, which shows all options."""
        self._usual, self._examples = tuple(usual.split()), examples
        self.add_argument(
            "--help-all", action=_WholeHelp, nargs=0, dest=argparse.SUPPRESS, default=argparse.SUPPRESS,
            help="show every option",
        )  # fmt: skip

    def format_short_help(self) -> str:
        """Return the short help. If `set_short_help` was not called, return the whole help."""
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
        return (
            f"{formatter.format_help()}\nexamples:\n{self._examples}\nall options: {self.prog} --help-all\n"
        )

    def print_help(self, file: Any = None) -> None:
        """Print the short help, for `--help`."""
        self._print_message(self.format_short_help(), file or sys.stdout)

    def complete(self) -> None:
        add_options, self._late = self._late, None
        if add_options is not None:
            add_options(self)

    def error(self, message: str) -> NoReturn:
        """Print the usage, then the error, and exit. The error is the last line, so a long usage does not hide it.
        Control characters in the error are escaped."""
        from evalharness.base.text import printable

        usage = self.format_usage()
        if usage.count("\n") > _USAGE_LINES:
            usage = f"usage: {self.prog} [OPTIONS]; see: {self.prog} --help\n"
        self._print_message(usage, sys.stderr)
        self.exit(2, f"{self.prog}: error: {printable(message, single_line=True)}\n")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the arguments. Refuse unknown words, unless a subcommand's parser must do this."""
        self.complete()
        if args and args[0] in self.beside:
            return self.beside[args[0]].parse_known_args(args[1:], namespace)
        values, unknown = super().parse_known_args(args, namespace)
        if self.loose is not None:
            words = [word for word in unknown if not word.startswith("-")]
            setattr(values, self.loose, [*getattr(values, self.loose), *words])
            unknown = [word for word in unknown if word.startswith("-")]
        if unknown and not subcommands(self):
            self.error(self._describe_unknown(unknown))
        return values, unknown

    def _describe_unknown(self, words: Sequence[str]) -> str:
        """Return a message such as `unrecognized arguments: --modle; did you mean --model?`."""
        known = [name for name in self._option_string_actions if name.startswith("--")]
        typed = [word.partition("=")[0] for word in words if word.startswith("--")]
        guesses = [close for word in typed if (close := close_to(word, known)) is not None]
        return f"unrecognized arguments: {' '.join(words)}" + (
            f"; did you mean {' '.join(guesses)}?" if guesses else ""
        )

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise an error for a wrong choice. The error names the most similar choice; if there is none, all choices."""
        wrong = action.choices is not None and value not in action.choices
        if wrong and (close := close_to(str(value), [str(choice) for choice in action.choices or ()])):
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; did you mean {close!r}?")
        super()._check_value(action, value)


def add_command(commands: Commands, name: str, module: ModuleType, *, listed: bool = True) -> None:
    """Add the command that a module defines by HELP, `add_options`, a docstring, and `run` unless it only has
    subcommands. A text DESCRIPTION replaces the docstring; its later lines may be indented. `listed`: whether the
    program's help lists the command."""
    description = getattr(module, "DESCRIPTION", module)
    more = {"help": module.HELP} if listed else {}
    parser = commands.add_parser(name, **more, **_description_of(description))
    parser.add_late(module.add_options)
    if hasattr(module, "run"):
        parser.set_defaults(run=module.run)


def subcommand(
    commands: Commands, name: str, run: Run, help: str, description: str | None = None
) -> CommandParser:
    """Add a subcommand. `description` replaces `run`'s docstring."""
    parser = commands.add_parser(name, help=help, **_description_of(description or run))
    parser.set_defaults(run=run)
    return parser


def _description_of(source: ModuleType | Run | str) -> dict[str, Any]:
    """Return argparse's arguments for a command's description. If the text has columns, keep its line breaks."""
    text = source if isinstance(source, str) else inspect.getdoc(source)
    in_columns = text is not None and "  " in text
    formatter = argparse.RawDescriptionHelpFormatter if in_columns else argparse.HelpFormatter
    return {"description": text, "formatter_class": formatter}


def subcommands(parser: CommandParser) -> dict[str, CommandParser]:
    """Map names of subcommands to parsers, in the order of the help."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def children(parser: CommandParser) -> dict[str, CommandParser]:
    """Map names to parsers: the subcommands, and the commands of `add_beside`."""
    return subcommands(parser) | parser.beside


def walk_commands(parser: CommandParser) -> Iterator[CommandParser]:
    """Yield a parser and the parsers of all its subcommands, after adding their late options."""
    parser.complete()
    yield parser
    for child in children(parser).values():
        yield from walk_commands(child)
