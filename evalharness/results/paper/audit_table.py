"""Findings of the audit of published numbers, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.results.paper.audit import KINDS, Finding


def print_findings(console: Console, findings: Sequence[Finding]) -> None:
    for kind, meaning in KINDS.items():
        listed = [finding for finding in findings if finding.kind == kind]
        console.print(Text(f"{len(listed)} × {meaning}", style="bold" if listed else "dim"))
        if not listed:
            continue
        table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
        for justify in ("left", "left", "left", "right", "left"):
            table.add_column(justify=justify, overflow="fold")
        for finding in listed:
            cells = (finding.table, finding.row, finding.column, finding.printed, finding.detail)
            table.add_row("", *map(Text, cells))
        console.print(table)
        console.print()
