"""Progress of the making of a suite: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    from evalharness.suites.open import Proven

_PLAIN_EVERY = 10.0
"""Seconds between lines where there is no terminal."""


@contextmanager
def building(title: str, total: int, console: Console) -> Iterator[Callable[[Proven], None]]:
    """Gives the function to call with each task that is done."""
    if not console.is_terminal:
        started = said = time.monotonic()
        done = 0

        def tell(row: Proven) -> None:
            nonlocal said, done
            done += 1
            if time.monotonic() - said >= _PLAIN_EVERY:
                said = time.monotonic()
                console.print(f"{title}: {done}/{total} tasks, {said - started:.0f} s", soft_wrap=True)

        yield tell
        return
    columns = (
        TextColumn("{task.description:<13}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[kind]}", style="dim"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(title, total=total, kind="")
        yield lambda row: progress.update(bar, advance=1, kind=row.task.kind[:18])
