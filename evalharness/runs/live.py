"""A run's progress while it runs: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table

from evalharness.base.terminal import line, make_console
from evalharness.base.text import duration
from evalharness.base.watching import watching
from evalharness.envs import specs
from evalharness.play.progress import FamilyProgress, Progress

_BAR = 12


def _format_speed(progress: Progress) -> str:
    elapsed = max(progress.elapsed, 1e-9)
    parts = [f"{progress.turns / elapsed:.1f} turns/s"]
    if progress.completion_tokens:
        parts.append(f"{progress.completion_tokens / elapsed:.0f} tokens/s")
    parts.append(f"{duration(progress.elapsed)} so far")
    if (left := progress.seconds_left) is not None:
        parts.append(f"about {duration(left)} left")
    if progress.retries:
        busy = f", {progress.refusals} refused as too many" if progress.refusals else ""
        parts.append(f"{progress.retries} requests made again{busy}")
    return " · ".join(parts)


def _list_failed(progress: Progress, titles: Mapping[str, str]) -> str:
    """Return a line with the number of given-up episodes of each family; "" without such episodes."""
    counts = {titles.get(family, family): one.failures for family, one in progress.families.items()}
    parts = [f"{title} {failures}" for title, failures in counts.items() if failures]
    return f"given up, to be tried again by the same command: {', '.join(parts)}" if parts else ""


def _so_far(counts: FamilyProgress, total: float) -> str:
    """Return the family's mean score in percent. While episodes are left, return the range of possible final means.
    Return `-` until half of the episodes are finished: short episodes end first, and most of them are successes."""
    left = counts.total - counts.done
    if counts.total == 0 or left > counts.done:
        return "-"
    low, high = (100 * score / counts.total for score in (total, total + left))
    return f"{math.floor(low)}-{math.ceil(high)} %" if left else f"{low:.1f} %"


def _view(progress: Progress, titles: Mapping[str, str]) -> RenderableType:
    """Return the live view. It fits 80 columns, and long lines are folded, not cut."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("family", no_wrap=True)
    table.add_column("", width=_BAR)
    for name in ("done", "success", "progress", "running"):
        table.add_column(name, justify="right", no_wrap=True)
    for family, counts in progress.families.items():
        done = counts.done
        table.add_row(
            titles.get(family, family),
            ProgressBar(total=max(counts.total, 1), completed=done, width=_BAR),
            f"{done}/{counts.total}",
            _so_far(counts, counts.successes),
            _so_far(counts, counts.progress_sum),
            str(counts.running),
        )
    lines = [
        (_format_speed(progress), "dim"),
        (progress.engine(), "dim"),
        (_list_failed(progress, titles), "yellow"),
        (progress.warning, "bold yellow"),
        (progress.status, "yellow"),
    ]
    return Group(table, *(line(text, style) for text, style in lines if text))


def _line(progress: Progress, titles: Mapping[str, str]) -> str:
    """Return one line for a log, with less detail than `_view`."""
    parts = []
    for family, counts in progress.families.items():
        success = _so_far(counts, counts.successes)
        rate = "" if success == "-" else f", success {success}"
        failed = f", {counts.failures} failed" if counts.failures else ""
        parts.append(f"{titles.get(family, family)} {counts.done}/{counts.total}{rate}{failed}")
    if progress.turns:
        parts.append(_format_speed(progress))
    if progress.warning:
        parts.append(progress.warning)
    return " | ".join(filter(None, parts))


@contextmanager
def watch(progress: Progress) -> Iterator[None]:
    """Show `progress` on standard error while the context is open."""
    titles = {family: spec.title for family, spec in specs().items()}
    with watching(
        make_console(stderr=True),
        lambda: _view(progress, titles),
        status=lambda: progress.status,
        line=lambda: _line(progress, titles) if progress.turns else "",
    ):
        yield
