"""A run's progress while it runs: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evalharness.engine.progress import Progress
from evalharness.report.text import duration, printable
from evalharness.report.watching import watching


def _speed(progress: Progress) -> str:
    elapsed = max(progress.elapsed, 1e-9)
    parts = [f"{progress.turns / elapsed:.1f} turns/s"]
    if progress.completion_tokens:
        parts.append(f"{progress.completion_tokens / elapsed:.0f} tokens/s")
    left = progress.seconds_left
    parts.append(f"{duration(progress.elapsed)} so far")
    if left:
        parts.append(f"about {duration(left)} left")
    return " · ".join(parts)


class _View:
    def __init__(self, progress: Progress, titles: Mapping[str, str]) -> None:
        self.progress = progress
        self.titles = titles

    def __rich__(self) -> RenderableType:
        table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
        table.add_column("family", no_wrap=True)
        table.add_column("", width=20)
        for name in ("done", "success", "progress", "running"):
            table.add_column(name, justify="right", no_wrap=True)
        for family, counts in self.progress.families.items():
            done = counts.done
            table.add_row(
                self.titles.get(family, family),
                ProgressBar(total=max(counts.total, 1), completed=done, width=20),
                f"{done}/{counts.total}",
                f"{100 * counts.successes / done:.1f} %" if done else "-",
                f"{100 * counts.progress_sum / done:.1f} %" if done else "-",
                str(counts.running) + (f", {counts.failures} failed" if counts.failures else ""),
            )
        status = Text(
            printable(self.progress.status, single_line=True),
            style="yellow",
            no_wrap=True,
            overflow="ellipsis",
        )
        engine = Text(
            printable(self.progress.engine(), single_line=True),
            style="dim",
            no_wrap=True,
            overflow="ellipsis",
        )
        return Group(table, Text(_speed(self.progress), style="dim"), engine, status)


def _line(progress: Progress, titles: Mapping[str, str]) -> str:
    parts = []
    for family, counts in progress.families.items():
        rate = f", success {100 * counts.successes / counts.done:.1f} %" if counts.done else ""
        failed = f", {counts.failures} failed" if counts.failures else ""
        parts.append(f"{titles.get(family, family)} {counts.done}/{counts.total}{rate}{failed}")
    if progress.turns:
        parts += [_speed(progress), progress.engine()]
    return " | ".join(parts)


@contextmanager
def watch(progress: Progress, titles: Mapping[str, str], console: Console) -> Iterator[None]:
    """Show `progress` until the context closes."""
    with watching(
        console,
        _View(progress, titles),
        status=lambda: progress.status,
        line=lambda: _line(progress, titles) if progress.turns else "",
    ):
        yield
