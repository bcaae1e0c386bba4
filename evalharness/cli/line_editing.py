"""Lines that a person types: arrow keys, earlier lines, completion, where the terminal and readline have them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any


class LineReader:
    """`words()` gives whole lines that the tab key completes to."""

    def __init__(self, words: Callable[[], Sequence[str]]) -> None:
        self._words = words
        self._found: list[str] = []
        self._readline: Any = None
        if not sys.stdin.isatty():
            return
        with contextlib.suppress(ImportError):  # Windows has none; lines are then typed without editing
            import readline

            self._readline = readline
            readline.set_completer(self._complete)
            readline.set_completer_delims("")
            # macOS brings libedit under the same name, which binds keys in other words.
            libedit = "libedit" in (readline.__doc__ or "")
            readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")

    def ask(self, prompt: str) -> str:
        """Raises EOFError at the end of the input.

        The prompt goes through `input`: what somebody else printed before the line, readline would overwrite.
        """
        return input(prompt)

    def _complete(self, text: str, state: int) -> str | None:
        if state == 0:
            self._found = [word for word in self._words() if word.startswith(text)]
        return self._found[state] if state < len(self._found) else None
