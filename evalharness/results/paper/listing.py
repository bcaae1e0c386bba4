"""The list of exhibits, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.base.text import printable


def print_exhibits(console: Console, found: Sequence[Mapping[str, Any]], left_out: Sequence[str]) -> None:
    """`found`: of each exhibit what `Exhibit.to_json` says."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in found:
        name = row["name"]
        title = (
            row["title"].partition(": ")[2]
            if row["title"].startswith(("table ", "figure "))
            else row["title"]
        )
        table.add_row(Text(name, style="bold"), Text(title, style="bold"))
        table.add_row("", _line(row["shows"]))
        if row["filled_by"]:
            table.add_row("", _line(f"filled by: {', '.join(row['filled_by'])}", "green"))
        for missing in row["missing"]:
            table.add_row(
                "", _line(f"missing: {missing}" if row["filled_by"] else f"fill it: {missing}", "dim")
            )
    console.print(table)
    for why in left_out:
        console.print(_line(f"left out: {why}", "yellow"))


def _line(text: str, style: str = "") -> Text:
    return Text(printable(text, single_line=True), style=style)
