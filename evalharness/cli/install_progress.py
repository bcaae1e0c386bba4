"""Show the progress of a long installation: its steps as lines, and on a terminal the last line of its output."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from evalharness.base.stream import STEP


@contextmanager
def install_progress(out: TextIO) -> Iterator[Callable[[str], None]]:
    """Yield a function that must be called with every line of the installation's output."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from evalharness.base.terminal import console_for

    began, console = time.monotonic(), console_for(out)
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    live = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = live.add_task("", total=None)

    def show(line: str) -> None:
        text = line.strip()
        if text.startswith(STEP):
            text = text.removeprefix(STEP)
            console.print(f"{time.monotonic() - began:5.0f} s  {text}", soft_wrap=True)
        live.update(task, description=text[: max(20, console.width - 16)])

    with live:
        yield show
