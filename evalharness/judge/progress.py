"""What asking a model has done so far, and a view of it: live on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table

from evalharness.engine.asking import WorkProgress
from evalharness.report.text import duration
from evalharness.report.watching import dim, watching


@dataclass
class AskingProgress(WorkProgress):
    what: str
    """What is asked for, in the plural: `judgements`."""
    total: int = 0
    finished: int = 0
    """Those of earlier sessions included."""
    unread: int = 0
    """Replies that were not what was asked for."""
    _here: int = 0

    def count(self, completion_tokens: int | None) -> None:
        self.finished += 1
        self._here += 1
        self.completion_tokens += completion_tokens or 0

    def line(self) -> str:
        parts = [f"{self.what} {self.finished}/{self.total}"]
        if self.unread:
            parts.append(f"{self.unread} replies not readable")
        if self.failures:
            parts.append(f"{self.failures} failed")
        parts.append(f"{self.running} at the model")
        if self._here:
            parts.append(f"{60 * self._here / max(self.elapsed, 1e-9):.0f} a minute")
            left = (self.total - self.finished - self.failures) * self.elapsed / self._here
            parts.append(f"{duration(self.elapsed)} so far, about {duration(left)} left")
        return " · ".join(parts)


Watch = Callable[[AskingProgress], AbstractContextManager[None]]
"""Shows the progress for as long as its context is open."""


@contextmanager
def unwatched(progress: AskingProgress) -> Iterator[None]:
    yield


@dataclass
class _View:
    progress: AskingProgress

    def __rich__(self) -> RenderableType:
        bar = Table(box=None, padding=(0, 1), pad_edge=False, show_header=False)
        total = max(self.progress.total, 1)
        bar.add_row(
            ProgressBar(total=total, completed=self.progress.finished, width=20),
            dim(self.progress.line(), ""),
        )
        return Group(bar, dim(self.progress.engine()), dim(self.progress.status, "yellow"))


@contextmanager
def watch_asking(progress: AskingProgress, console: Console) -> Iterator[None]:
    """Show `progress` until the context closes."""

    def line() -> str:
        return progress.line() if progress.running or progress.finished else ""

    with watching(console, _View(progress), status=lambda: progress.status, line=line):
        yield
