"""Print a list of runs as a table."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.base.terminal import line
from evalharness.base.text import fold, pieces, printable
from evalharness.results.score import ESTIMATED, HELD_OUT, POOLED
from evalharness.runs.listing import RunEntry

PART, ESTIMATE, TOGETHER = "\u2020", "\u2021", "\u00b0"
_MARKS = {
    PART: "of a part of the tasks",
    ESTIMATE: "the held-out score, estimated from a part of its tasks (--subset)",
    TOGETHER: "several families pooled; not the held-out score",
}
_STYLES = {"complete": "", "running": "cyan", "part": "yellow", "damaged": "red"}


_NAMES, _NUMBERS = ("folder", "model", "suite"), ("done", "played", "success %", "progress")


def print_runs(console: Console, entries: Sequence[RunEntry]) -> None:
    names = [
        [printable(text, single_line=True) for text in (_path(one.folder), one.model, _what(one))]
        for one in entries
    ]
    numbers = [
        (_format_done(e), _day(e.played), _score(e, "success"), _score(e, "progress")) for e in entries
    ]
    used = sum(1 + max(map(len, column)) for column in zip(_NUMBERS, *numbers, strict=True))
    widths = _widths(names, console.width - used)
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    for name, width in zip(_NAMES, widths, strict=True):
        table.add_column(name, width=width, overflow="fold")
    for name in _NUMBERS:
        table.add_column(name, justify="left" if name == "played" else "right", no_wrap=True)
    for entry, texts, (done, *others) in zip(entries, names, numbers, strict=True):
        cells = [Text(fold(text, width)) for text, width in zip(texts, widths, strict=True)]
        table.add_row(*cells, Text(done, style=_STYLES[entry.state]), *map(Text, others))
    console.print(table)
    for entry in entries:
        if entry.why:
            console.print(line(entry.why, "red"), soft_wrap=True)
    if any((len(entry.families) == 1 and entry.scores) or entry.runs for entry in entries):
        note = "scores: held-out, or of the only family; study: min-max"
        console.print(Text(note, style="dim"))
    for mark, meaning in _MARKS.items():
        if any(mark in _score(entry, "success") for entry in entries):
            console.print(Text(f"{mark} {meaning}", style="dim"))


def _widths(names: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return the columns' widths: each fits its longest piece, and long columns share the remaining width."""
    columns = list(zip(_NAMES, *names, strict=True))
    least = [max(len(piece.rstrip()) for text in column for piece in pieces(text)) for column in columns]
    whole = [max(map(len, column)) for column in columns]
    room -= len(columns) - 1
    spare, wanted = max(0, room - sum(least)), max(1, sum(whole) - sum(least))
    if sum(least) > room:
        return [max(8, room * width // sum(least)) for width in least]
    share = min(1.0, spare / wanted)
    return [low + int(share * (high - low)) for low, high in zip(least, whole, strict=True)]


def _path(folder: Path) -> str:
    """Return the shortest path to `folder` that works in the current folder."""
    near = os.path.relpath(folder)
    return near if len(near) < len(str(folder)) else str(folder)


def _what(entry: RunEntry) -> str:
    families = entry.families[0] if len(entry.families) == 1 else ""
    parts = [entry.suite, families, entry.perturbation or ""]
    if entry.study:
        parts.append(f"{entry.study} of {len(entry.runs)} runs")
    return ", ".join(filter(None, parts))


def _format_done(entry: RunEntry) -> str:
    if entry.state == "damaged" and not entry.runs:
        return "damaged"
    share = str(entry.episodes) if entry.done >= entry.episodes else f"{entry.done}/{entry.episodes}"
    return f"{entry.state} {share}" if entry.state in ("running", "damaged") else share


def _day(played: float) -> str:
    """Return a time of this year as `11-22 15:04`, a time of another year as `2025-11-22`."""
    if not played:
        return "-"
    then, now = time.localtime(played), time.localtime()
    return time.strftime("%m-%d %H:%M" if then.tm_year == now.tm_year else "%Y-%m-%d", then)


def _score(entry: RunEntry, measure: str) -> str:
    if entry.runs:
        values = [value for run in entry.runs if (value := run.headline(measure)) is not None]
        if not values:
            return "-"
        low, high = (f"{100 * end:.1f}" for end in (min(values), max(values)))
        return (low if low == high else f"{low} to {high}") + _mark_of(entry)
    value = entry.headline(measure)
    if value is None:
        return "-"
    return f"{100 * value:.1f}{_mark_of(entry)}"


def _mark_of(entry: RunEntry) -> str:
    """Return the mark of a score, or "". A study has the mark that all its runs have, otherwise `PART`."""
    if entry.runs:
        marks = {_mark_of(run) for run in entry.runs}
        return marks.pop() if len(marks) == 1 else PART
    if entry.headline_of in (HELD_OUT, ESTIMATED):
        return ESTIMATE if entry.headline_of == ESTIMATED else ""
    pooled = TOGETHER if entry.headline_of == POOLED else ""
    return pooled if entry.done >= entry.episodes and not entry.part else PART + pooled
