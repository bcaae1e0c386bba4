"""Everything that is printed goes through here: tables and lines by a console, single messages by `say`.

What comes from a model, a server, a game, a file or the command line can hold escape sequences, which a terminal obeys.
They are made visible here, once, and nowhere else in the package is a console made or `print` called.
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
"""Characters a line may have where nobody folds it: a row stays one line for grep, and keeps no padding."""


class SafeConsole(Console):
    """Shows text as it is: no escape sequence in it steers the terminal, no `[bold]` in it is markup."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        # Everything that rich prints comes out of here as text and style apart: what is styled, or moves the cursor
        # for a live view, rich adds itself, after.
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """The command line decides what a reader who has had enough means; rich would exit with status 1."""
        raise BrokenPipeError


class _Trimmed:
    """A text stream that drops the blanks a table puts at the ends of its lines."""

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
    """A table without lines. Of columns that are only named the first names a row, and the others hold numbers, to the
    right."""
    headings = [
        Column(one, justify="right" if number else "left", no_wrap=True) if isinstance(one, str) else one
        for number, one in enumerate(columns)
    ]
    return Table(*headings, box=None, header_style="bold", padding=(0, gap, 0, 0), pad_edge=False)


def words(name: str) -> Column:
    """A column of `plain_table` that holds words, folded where they are too long for a line."""
    return Column(name, overflow="fold")


def line(text: str, style: str = "") -> Text:
    """As one line, whatever characters are in it."""
    return Text(printable(text, single_line=True), style=style)


def remark(console: Console, text: str) -> None:
    """A line that explains what stands above it."""
    console.print(line(text, "dim"))


def say(text: str, *, stderr: bool = True) -> None:
    """Print a message: what the command did, or why it could not."""
    print(printable(text), file=sys.stderr if stderr else sys.stdout, flush=True)


def console_for(stream: TextIO, *, width: int | None = None) -> Console:
    """For another stream than those of the process."""
    return SafeConsole(file=stream, width=width, highlight=False, markup=False, emoji=False)


def make_console(*, stderr: bool = False) -> Console:
    """For results. On a terminal as wide as it is, colours as `NO_COLOR` and `TERM` allow; into a pipe or a file plain
    text with a line a row, or as wide as `COLUMNS` says. Numbers are not coloured for being numbers."""
    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return SafeConsole(stderr=stderr, highlight=False, markup=False, emoji=False)
    width = None if os.environ.get("COLUMNS", "").isdecimal() else _PIPE_WIDTH
    return console_for(cast(TextIO, _Trimmed(stream)), width=width)


def complete_lines(words: Callable[[], Sequence[str]]) -> None:
    """Lines that `input` reads from here on have arrow keys, earlier lines, and the tab key completes them to one of
    `words()`, where the terminal and readline have them. Give `input` the whole prompt: what stands before it in the
    line, readline would overwrite."""
    if not sys.stdin.isatty():
        return
    found: list[str] = []

    def complete(text: str, state: int) -> str | None:
        if state == 0:
            found[:] = [word for word in words() if word.startswith(text)]
        return found[state] if state < len(found) else None

    with suppress(ImportError):  # Windows has none; lines are then typed without editing
        import readline

        readline.set_completer(complete)
        readline.set_completer_delims("")
        # macOS brings libedit under the same name, which binds keys in other words.
        libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
