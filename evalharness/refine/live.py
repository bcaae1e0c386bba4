"""The progress of scripts and trajectories: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evalharness.refine.synthesis_progress import SynthesisProgress
from evalharness.report.text import duration
from evalharness.report.watching import dim, watching


def counts_line(progress: SynthesisProgress) -> str:
    """`scripts 12/40 · passed 10 (8 at call 1, 2 at call 2) · rejected 2 (KEYS 1, JSON 1) · 16 at work`."""
    counted = progress.tally
    parts = [f"{progress.kind} {counted.finished}/{progress.total}"]
    at = ", ".join(f"{counted.passed_at[call]} at call {call}" for call in sorted(counted.passed_at))
    parts.append(f"passed {counted.passed}" + (f" ({at})" if at else ""))
    if counted.rejected:
        why = ", ".join(f"{signal} {count}" for signal, count in counted.rejected.most_common())
        parts.append(f"rejected {counted.rejected.total()} ({why})")
    if progress.failures:
        parts.append(f"{progress.failures} failed")
    parts.append(f"{progress.running} at work")
    return " · ".join(parts)


def speed_line(progress: SynthesisProgress) -> str:
    elapsed = max(progress.elapsed, 1e-9)
    parts = [f"{progress.calls} calls, {60 * progress.calls / elapsed:.0f} a minute"]
    if progress.completion_tokens:
        parts.append(f"{progress.completion_tokens / elapsed:.0f} tokens/s")
    parts.append(f"{duration(progress.elapsed)} so far")
    if left := progress.seconds_left:
        parts.append(f"about {duration(left)} left")
    return " · ".join(parts)


class _View:
    def __init__(self, progress: SynthesisProgress) -> None:
        self.progress = progress

    def __rich__(self) -> RenderableType:
        progress = self.progress
        bar = Table(box=None, padding=(0, 1), pad_edge=False, show_header=False)
        finished = progress.tally.finished
        bar.add_row(
            ProgressBar(total=max(progress.total, 1), completed=finished, width=20),
            Text(counts_line(progress)),
        )
        status = dim(progress.status, "yellow")
        return Group(bar, dim(speed_line(progress)), dim(progress.engine()), status)


@contextmanager
def watch_synthesis(progress: SynthesisProgress, console: Console) -> Iterator[None]:
    """Show `progress` until the context closes."""

    def line() -> str:
        return f"{counts_line(progress)} | {speed_line(progress)}" if progress.calls else ""

    with watching(console, _View(progress), status=lambda: progress.status, line=line):
        yield
