"""Print all output of this package: tables and lines by a console, single messages by `say`.

Text of a model, a server, a game, a file or the command line can contain escape sequences that control the terminal.
This module prints escape sequences as visible text, so no other module makes a console or calls `print`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from evalharness.base.text import printable

_PIPE_WIDTH = 10_000
"""Characters per line for pipes: a row stays one line for grep, without padding."""


class SafeConsole(Console):
    """Prints text literally: escape sequences do not reach the terminal, and `[bold]` is not markup."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        # Replace escape sequences here, where text and style are still separate: rich later adds its own escape
        # sequences for styles and live views.
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, which the command line handles; rich itself would exit with status 1."""
        raise BrokenPipeError


class _Trimmed:
    """A text stream that removes trailing blanks of table lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(re.sub(r"[ \t]+(?=\n)", "", text))

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return False

    @property
    def encoding(self) -> str:
        return self._stream.encoding


def plain_table(*columns: str | Column, gap: int = 1) -> Table:
    """Make a table without lines. If a column is given by name, the first one is left-aligned, others right-aligned."""
    headings = [
        Column(one, justify="right" if number else "left", no_wrap=True) if isinstance(one, str) else one
        for number, one in enumerate(columns)
    ]
    return Table(*headings, box=None, header_style="bold", padding=(0, gap, 0, 0), pad_edge=False)


def words(name: str) -> Column:
    """Make a column of words for `plain_table`; long words are folded."""
    return Column(name, overflow="fold")


def line(text: str, style: str = "") -> Text:
    """Show any text as one line."""
    return Text(printable(text, single_line=True), style=style)


def remark(console: Console, text: str) -> None:
    """Print a dim line that explains the output above this line."""
    console.print(line(text, "dim"))


def say(text: str, *, stderr: bool = True) -> None:
    """Print a message: what the command did, or why it failed."""
    print(printable(text), file=sys.stderr if stderr else sys.stdout, flush=True)


def console_for(stream: TextIO, *, width: int | None = None) -> Console:
    """Make a console for a stream other than the process's own."""
    return SafeConsole(file=stream, width=width, highlight=False, markup=False, emoji=False)


def make_console(*, stderr: bool = False) -> Console:
    """Make a console for results. On a terminal it uses the terminal's width, and colours if `NO_COLOR` and `TERM`
    allow them. To a pipe or file it prints plain text, one line per row, or lines of width `COLUMNS`."""
    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return SafeConsole(stderr=stderr, highlight=False, markup=False, emoji=False)
    width = None if os.environ.get("COLUMNS", "").isdecimal() else _PIPE_WIDTH
    return console_for(cast(TextIO, _Trimmed(stream)), width=width)


def complete_lines(words: Callable[[], Sequence[str]]) -> None:
    """Add arrow keys, history and completion of `words()` by the tab key to `input`, if the terminal and readline
    support them. Pass the whole prompt to `input`: readline would overwrite text before it on the line."""
    if not sys.stdin.isatty():
        return
    matches: list[str] = []

    def complete(text: str, state: int) -> str | None:
        if state == 0:
            matches[:] = [word for word in words() if word.startswith(text)]
        return matches[state] if state < len(matches) else None

    with suppress(ImportError):  # Windows has no readline, so lines cannot be edited there
        import readline

        readline.set_completer(complete)
        readline.set_completer_delims("")
        # macOS has libedit under the same name, with another syntax for key bindings.
        libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
