"""Parsers whose options may be added late, and whose errors cannot steer a terminal.

Options made of `RunConfig` import pydantic and numpy; `evalharness --help` and the other commands do not wait for them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

AddOptions = Callable[[argparse.ArgumentParser], None]


class CommandParser(argparse.ArgumentParser):
    """The commands' parsers are of the same class as the program's, which argparse sees to."""

    _late: AddOptions | None = None
    beside: dict[str, CommandParser]
    """Commands that stand in the place of this one's arguments: `leaderboard submit` beside `leaderboard RUN...`."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.beside = {}

    def add_beside(self, name: str, description: str) -> CommandParser:
        """The command that a first word of `name` means."""
        self.beside[name] = CommandParser(prog=f"{self.prog} {name}", description=description)
        return self.beside[name]

    def add_late(self, add_options: AddOptions) -> None:
        """`add_options` is called once, when this command is given or `complete` is called."""
        self._late = add_options

    def complete(self) -> None:
        add_options, self._late = self._late, None
        if add_options is not None:
            add_options(self)

    def error(self, message: str) -> NoReturn:
        """What is refused can hold anything: it is shown, not obeyed."""
        from evalharness.report.text import printable

        super().error(printable(message, single_line=True))

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self.complete()
        if args and args[0] in self.beside:
            return self.beside[args[0]].parse_known_args(args[1:], namespace)
        return super().parse_known_args(args, namespace)


def add_late(parser: argparse.ArgumentParser, add_options: AddOptions) -> None:
    """As soon as someone asks, `add_options(parser)`; at once for a parser that is not of ours."""
    if isinstance(parser, CommandParser):
        parser.add_late(add_options)
    else:
        add_options(parser)


def complete(parser: argparse.ArgumentParser) -> None:
    """All options of a parser and of the commands below it."""
    if isinstance(parser, CommandParser):
        parser.complete()
        for child in parser.beside.values():
            complete(child)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                complete(child)
