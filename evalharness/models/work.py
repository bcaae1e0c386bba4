"""Show the progress of many requests to a model: live on a terminal, otherwise as plain lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evalharness.base.text import duration
from evalharness.base.watching import dim, watching

_ENOUGH = 10
"""Jobs that must be finished in this session before the remaining time is estimated."""


@dataclass
class WorkProgress:
    what: str
    """Name of the jobs, in the plural: `judgements`."""
    total: int = 0
    finished: int = 0
    """Jobs finished, including those of earlier sessions."""
    running: int = 0
    failures: int = 0
    """Jobs given up after infrastructure failures; if the user repeats the command, they are tried again."""
    calls: int = 0
    """Requests answered in this session."""
    completion_tokens: int = 0
    status: str = ""
    stopped: str | None = None
    """Why the command ended before every job was tried."""
    engine: Callable[[], str] = lambda: ""
    """Return one line on the concurrency and the load of the model's server."""
    started: float = field(default_factory=time.monotonic)
    here: int = 0
    """Jobs finished in this session."""

    def set_status(self, text: str) -> None:
        self.status = text

    def finish(self, what: object = None) -> None:
        self.finished += 1
        self.here += 1

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds left, at the rate of this session; None before enough jobs are finished."""
        if self.here < _ENOUGH:
            return None
        return (self.total - self.finished - self.failures) * self.elapsed / self.here

    def details(self) -> list[str]:
        """Return details about the finished jobs."""
        return []

    def counts(self) -> str:
        """Return for example `scripts 12/40 · passed 10 (8 at call 1, 2 at call 2) · rejected 2 · 16 at work`."""
        failed = [f"{self.failures} failed"] if self.failures else []
        parts = [f"{self.what} {self.finished}/{self.total}", *self.details(), *failed]
        return " · ".join([*parts, *([f"{self.running} at work"] if self.running or self.calls else [])])

    def speed(self) -> str:
        elapsed = max(self.elapsed, 1e-9)
        parts = [f"{self.calls} calls, {60 * self.calls / elapsed:.0f} a minute"] if self.calls else []
        if self.completion_tokens:
            parts.append(f"{self.completion_tokens / elapsed:.0f} tokens/s")
        parts.append(f"{duration(self.elapsed)} so far")
        if left := self.seconds_left:
            parts.append(f"about {duration(left)} left")
        return " · ".join(parts)


Watch = Callable[[Any], AbstractContextManager[object]]
"""Shows a WorkProgress while its context is open."""


@contextmanager
def watch_work(progress: WorkProgress, console: Console) -> Iterator[None]:
    """Show `progress` until the context closes."""

    def view() -> RenderableType:
        bar = Table(box=None, padding=(0, 1), pad_edge=False, show_header=False)
        bar.add_row(
            ProgressBar(total=max(progress.total, 1), completed=progress.finished, width=20),
            Text(progress.counts()),
        )
        return Group(bar, dim(progress.speed()), dim(progress.engine()), dim(progress.status, "yellow"))

    def line() -> str:
        return f"{progress.counts()} | {progress.speed()}" if progress.calls or progress.here else ""

    with watching(console, view, status=lambda: progress.status, line=line):
        yield
