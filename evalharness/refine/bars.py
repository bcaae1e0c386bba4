"""Progress of the making of trajectories: a bar a family on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from evalharness.refine.grounded import Progress as Made

_PLAIN_EVERY = 10.0
"""Seconds between lines where there is no terminal."""


def _line(titles: dict[str, str], made: Made) -> str:
    return ", ".join(f"{titles[f]} {count.made}/{count.wanted}" for f, count in made.families.items())


@contextmanager
def watching(made: Made, titles: dict[str, str], console: Console) -> Iterator[None]:
    """Shows `made` for as long as the context is open."""
    over = threading.Event()
    started = time.monotonic()

    def plain() -> None:
        while not over.wait(_PLAIN_EVERY):
            seconds = time.monotonic() - started
            console.print(f"{_line(titles, made)}, {seconds:.0f} s", highlight=False, soft_wrap=True)

    def live() -> None:
        columns = (
            TextColumn("{task.description:<13}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[status]}", style="dim", markup=False),
        )
        with Progress(*columns, console=console, transient=True) as progress:
            bars = {
                family: progress.add_task(titles[family], total=count.wanted, status="")
                for family, count in made.families.items()
            }
            while not over.wait(0.25):
                for family, count in made.families.items():
                    progress.update(bars[family], completed=count.made, status=Text(count.status).plain[:60])

    thread = threading.Thread(target=live if console.is_terminal else plain, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
