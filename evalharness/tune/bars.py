"""A training as it goes: one live line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from evalharness.tune.progress import Progress as Training

_PLAIN_EVERY = 30.0
"""Seconds between lines where there is no terminal."""


def duration(seconds: float) -> str:
    """`3 h 05 min`, `12 min`, `40 s`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"


def figures(training: Training) -> str:
    """Loss, tokens a second, time left, as far as they are known."""
    parts = []
    if training.loss is not None:
        parts.append(f"loss {training.loss:.3f}")
    if training.tokens_per_s is not None:
        parts.append(f"{training.tokens_per_s:,.0f} tokens/s")
    if training.seconds_left is not None:
        parts.append(f"{duration(training.seconds_left)} left")
    return ", ".join(parts) or training.doing


@contextmanager
def watching(training: Training, console: Console) -> Iterator[None]:
    """Shows `training` for as long as the context is open."""
    over = threading.Event()

    def plain() -> None:
        said = -1
        while not over.wait(_PLAIN_EVERY if said >= 0 else 1.0):
            if training.step != said and training.recent:
                said = training.step
                console.print(
                    f"step {training.step:,} of {training.steps:,}, {figures(training)}",
                    highlight=False, soft_wrap=True, markup=False,
                )  # fmt: skip

    def live() -> None:
        columns = (
            TextColumn("training"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[status]}", markup=False),
        )
        with Progress(*columns, console=console, transient=True) as progress:
            bar = progress.add_task("", total=max(training.steps, 1), status="")
            while not over.wait(0.25):
                progress.update(
                    bar, total=max(training.steps, 1), completed=training.step, status=figures(training)
                )

    thread = threading.Thread(target=live if console.is_terminal else plain, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
