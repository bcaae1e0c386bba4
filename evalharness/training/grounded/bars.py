"""Progress of the making of trajectories: a bar a family on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evalharness.base.text import duration
from evalharness.base.watching import dim, watching
from evalharness.training.grounded.grounded import FamilyCounts


@contextmanager
def watch_making(made: FamilyCounts, titles: Mapping[str, str], console: Console) -> Iterator[None]:
    """Show `made` until the context closes."""
    started = time.monotonic()

    def view() -> RenderableType:
        bars = Table(box=None, padding=(0, 1), pad_edge=False, show_header=False)
        for family, count in made.families.items():
            done = ProgressBar(total=max(count.wanted, 1), completed=count.made, width=24)
            bars.add_row(Text(titles[family]), done, Text(f"{count.made}/{count.wanted}"), dim(count.status))
        return bars

    def line() -> str:
        counts = [f"{titles[family]} {count.made}/{count.wanted}" for family, count in made.families.items()]
        return f"{', '.join(counts)}, {duration(time.monotonic() - started)}"

    with watching(console, view, status=lambda: "", line=line):
        yield
