"""Show the progress of long work: a live view on a terminal, otherwise plain lines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from evalharness.base.text import printable


@contextmanager
def every(seconds: float, act: Callable[[], None]) -> Iterator[None]:
    """Call `act` every `seconds` seconds from another thread, and stop this thread when the context closes."""
    stop = threading.Event()

    def go() -> None:
        while not stop.wait(seconds):
            act()

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


_LINE_EVERY = 10.0
"""Seconds between lines without a terminal."""
_LOOK_EVERY = 0.5
"""Seconds between checks for a new status without a terminal."""


@dataclass
class _Plain:
    """Prints each new status at once, and the counts at intervals."""

    console: Console
    status: Callable[[], str]
    line: Callable[[], str]
    _status: str = ""
    _looks: int = 0

    def look(self) -> None:
        self._looks += 1
        if (status := self.status()) and status != self._status:
            self._status = status
            self._print(status)
        if self._looks >= _LINE_EVERY / _LOOK_EVERY and self.line():
            self._looks = 0
            self.count()

    def count(self) -> None:
        if line := self.line():
            self._print(line)

    def _print(self, text: str) -> None:
        self.console.print(Text(printable(text, single_line=True)), soft_wrap=True)


@contextmanager
def watching(
    console: Console,
    view: Callable[[], RenderableType],
    *,
    status: Callable[[], str],
    line: Callable[[], str],
) -> Iterator[None]:
    """Show the work until the context closes. `line` returns the counts in one line, or "" before there are any."""
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4, transient=True, get_renderable=view):
            yield
        return
    plain = _Plain(console, status, line)
    try:
        with every(_LOOK_EVERY, plain.look):
            yield
    finally:
        plain.count()


def dim(text: str, style: str = "dim") -> Text:
    """Format text beside a live view's bars; it is folded at the terminal's width and not cut."""
    return Text(printable(text, single_line=True), style=style)
