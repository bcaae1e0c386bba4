"""The list of run folders as a table."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.base.text import printable
from evalharness.runs.listing import HELD_OUT, Listed

PART = "\u2020"
_STYLES = {"complete": "", "running": "cyan", "part": "yellow", "damaged": "red"}


def print_runs(console: Console, entries: Sequence[Listed]) -> None:
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("folder", overflow="fold", min_width=12)
    table.add_column("model", overflow="fold", min_width=6)
    table.add_column("suite", overflow="fold", min_width=10)
    table.add_column("done", justify="right", no_wrap=True)
    table.add_column("played", no_wrap=True)
    table.add_column("success %", justify="right", overflow="fold")
    table.add_column("progress", justify="right", overflow="fold")
    for entry in entries:
        table.add_row(
            Text(printable(_path(entry.folder), single_line=True)),
            Text(printable(entry.model, single_line=True)),
            Text(printable(_what(entry), single_line=True)),
            Text(_done(entry), style=_STYLES[entry.state]),
            Text(_day(entry.played)),
            Text(_score(entry, "success")),
            Text(_score(entry, "progress")),
        )
    console.print(table)
    for entry in entries:
        if entry.why:
            console.print(Text(printable(entry.why, single_line=True), style="red"), soft_wrap=True)
    if any((len(entry.families) == 1 and entry.scores) or entry.runs for entry in entries):
        note = "scores: held-out; of a run of one family that family's; of a study from the lowest to the highest"
        console.print(Text(note, style="dim"))
    if any(PART in _score(entry, "success") for entry in entries):
        console.print(Text(f"{PART} of a part of the tasks; not representative", style="dim"))


def _path(folder: Path) -> str:
    """As short as it can be typed here."""
    near = os.path.relpath(folder)
    return near if len(near) < len(str(folder)) else str(folder)


def _what(entry: Listed) -> str:
    families = entry.families[0] if len(entry.families) == 1 else ""
    parts = [entry.suite, families, entry.perturbation or ""]
    if entry.study:
        parts.append(f"{entry.study} of {len(entry.runs)} runs")
    return ", ".join(filter(None, parts))


def _done(entry: Listed) -> str:
    if entry.state == "damaged" and not entry.runs:
        return "damaged"
    share = str(entry.episodes) if entry.done >= entry.episodes else f"{entry.done}/{entry.episodes}"
    return f"{entry.state} {share}" if entry.state in ("running", "damaged") else share


def _day(played: float) -> str:
    """`11-22 15:04` of this year, `2025-11-22` of another."""
    if not played:
        return "-"
    then, now = time.localtime(played), time.localtime()
    return time.strftime("%m-%d %H:%M" if then.tm_year == now.tm_year else "%Y-%m-%d", then)


def _score(entry: Listed, measure: str) -> str:
    if entry.runs:
        values = [value for run in entry.runs if (value := run.headline(measure)) is not None]
        if not values:
            return "-"
        low, high = (f"{100 * end:.1f}" for end in (min(values), max(values)))
        return (low if low == high else f"{low} to {high}") + PART * entry.part
    value = entry.headline(measure)
    if value is None:
        return "-"
    whole = HELD_OUT in entry.scores or (entry.done >= entry.episodes and not entry.part)
    return f"{100 * value:.1f}{PART * (not whole)}"
