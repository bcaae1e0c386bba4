"""Where printed results go: a terminal of any width, with colour or without, or a pipe."""

from __future__ import annotations

import os
import re
import sys
from typing import TextIO, cast

from rich.console import Console

_PIPE_WIDTH = 10_000
"""Characters a line may have where nobody folds it: a row stays one line for grep, and keeps no padding."""


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


def make_console(*, stderr: bool = False) -> Console:
    """For results. On a terminal as wide as it is, colours as `NO_COLOR` and `TERM` allow; into a pipe or a file plain
    text with a line a row, or as wide as `COLUMNS` says. Numbers are not coloured for being numbers."""
    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return Console(stderr=stderr, highlight=False)
    width = None if os.environ.get("COLUMNS", "").isdecimal() else _PIPE_WIDTH
    return Console(file=cast(TextIO, _Trimmed(stream)), width=width, highlight=False)
