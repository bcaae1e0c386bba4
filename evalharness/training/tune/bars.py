"""A training as it goes: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evalharness.base.text import duration
from evalharness.base.watching import dim, watching
from evalharness.training.tune.progress import TuningProgress


def figures(training: TuningProgress) -> str:
    """Loss, tokens a second, time left, as far as they are known."""
    parts = []
    if training.loss is not None:
        parts.append(f"loss {training.loss:.3f}")
    if training.tokens_per_s is not None:
        parts.append(f"{training.tokens_per_s:,.0f} tokens/s")
    if training.seconds_left is not None:
        parts.append(f"about {duration(training.seconds_left)} left")
    return ", ".join(parts)


def _steps(training: TuningProgress) -> str:
    return f"step {training.step:,} of {training.steps:,}"


@contextmanager
def watch_training(training: TuningProgress, console: Console) -> Iterator[None]:
    """Show `training` until the context closes."""

    def view() -> RenderableType:
        bar = Table(box=None, padding=(0, 1), pad_edge=False, show_header=False)
        done = ProgressBar(total=max(training.steps, 1), completed=training.step, width=24)
        bar.add_row(done, Text(_steps(training)))
        return Group(bar, dim(figures(training) or training.doing))

    def line() -> str:
        return f"{_steps(training)}, {figures(training)}" if training.step else ""

    with watching(console, view, status=lambda: training.doing, line=line):
        yield
