"""A table for a terminal of any width. Our rows have their intervals below their numbers, or where there is no room a
table of their own."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.table import Table as Drawn
from rich.text import Text

from evalharness.base.terminal import console_for
from evalharness.base.text import printable
from evalharness.results.paper.exhibit import Filled
from evalharness.results.paper.table import Cell, Column, Row, Table

OURS = "<"
_NARROWEST_NAME = 18
"""Columns that a name is folded into before a table is cut into several."""


def _line(text: str, style: str | None = None) -> Text:
    return Text(printable(text, single_line=True), style=style or "")


def grouped(rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    """(group, its rows) in order of their first."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    yield from groups.items()


def name_of(row: Row) -> str:
    return row.name + row.marks + (f" {OURS}" if row.ours else "")


def _cell(cell: Cell, column: Column, width: int, *, underlined: bool, intervals: bool) -> Text:
    marks = cell.marks + ("*" if underlined and cell.value is not None else "")
    number = printable(cell.shown(column, marks=False), single_line=True) + marks.ljust(width)
    lines = [number]
    if intervals and (ends := cell.interval(column)):
        lines.append(ends.replace(", ", "-").ljust(0))
    return Text("\n".join(lines))


def _drawn(table: Table, *, intervals: bool) -> Drawn:
    drawn = Drawn(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    drawn.add_column(_line(table.first), overflow="fold", min_width=_NARROWEST_NAME)
    for column in table.columns:
        drawn.add_column(_line(f"{column.group} {column.name}".strip()), justify="right", no_wrap=True)
    widths = {
        column.key: max(
            (len(row.cell(column).marks) + (column.key in row.underlined) for row in table.rows), default=0
        )
        for column in table.columns
    }
    for group, rows in grouped(table.rows):
        if group:
            drawn.add_row(_line(group, "dim"))
        for row in rows:
            cells = [
                _cell(
                    row.cell(column),
                    column,
                    widths[column.key],
                    underlined=column.key in row.underlined,
                    intervals=intervals and row.ours,
                )
                for column in table.columns
            ]
            style = "bold" if row.ours or row.strong else None
            drawn.add_row(_line(("  " if group else "") + name_of(row)), *cells, style=style)
    return drawn


def _fits(drawn: Drawn, console: Console) -> bool:
    wide = console.options.update(max_width=10_000)
    fixed = sum(
        column._cells is not None and _width(drawn, i, console) for i, column in enumerate(drawn.columns)
    )
    return fixed <= console.width if wide else False


def _width(drawn: Drawn, index: int, console: Console) -> int:
    """What a column needs; that of the names can be folded."""
    if index == 0:
        return _NARROWEST_NAME + 1
    column = drawn.columns[index]
    texts = [column.header, *column._cells]
    longest = max(len(line) for text in texts for line in str(text).split("\n"))
    return longest + 1


def _interval_tables(table: Table) -> Iterator[Drawn]:
    """Of each row of ours: a line a group of columns."""
    groups = table.groups if len(table.groups) > 1 else [c.name for c in table.columns]
    by_group = len(table.groups) > 1
    names = list(dict.fromkeys(c.name for c in table.columns)) if by_group else ["value"]
    for row in table.rows:
        if not row.ours or not any(cell.ci95 for cell in row.cells.values()):
            continue
        drawn = Drawn(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
        drawn.add_column(_line(row.name), overflow="fold")
        for name in names:
            drawn.add_column(_line(f"{name} [95 % CI]"), justify="right", no_wrap=True)
        for group in groups:
            columns = [c for c in table.columns if (c.group if by_group else c.name) == group]
            cells = [row.cell(column) for column in columns]
            if any(cell.value is not None for cell in cells):
                drawn.add_row(
                    _line(group),
                    *(
                        _line(cell.shown(column) + (f" [{cell.interval(column)}]" if cell.ci95 else ""))
                        for cell, column in zip(cells, columns, strict=True)
                    ),
                )
        yield drawn


def print_table(console: Console, table: Table) -> None:
    """As one where the console is wide enough, else a table for each measure; a piped table is one line a row."""
    if table.title:
        console.print(_line(table.title, "bold"), soft_wrap=True)
    parts = [table]
    if not _fits(_drawn(table, intervals=False), console) and len(table.groups) > 1:
        parts = table.by_name()
    inline = [_drawn(part, intervals=True) for part in parts]
    shown_inline = all(_fits(drawn, console) for drawn in inline)
    for drawn in inline if shown_inline else [_drawn(part, intervals=False) for part in parts]:
        console.print(drawn)
        console.print()
    if not shown_inline:
        for drawn in _interval_tables(table):
            console.print(drawn)
            console.print()
    if any(row.ours for row in table.rows) and any(not row.ours for row in table.rows):
        console.print(Text(f"{OURS} ours"), style="dim")
    for note in table.notes:
        console.print(_line(note), style="dim")


def text_of(*tables: Table, width: int = 80) -> str:
    """As `print_table` shows them."""
    buffer = io.StringIO()
    console = console_for(buffer, width=width)
    for table in tables:
        print_table(console, table)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def print_filled(console: Console, filled: Filled) -> None:
    """An exhibit's tables, and what is missing."""
    for table in filled.tables:
        print_table(console, table)
        console.print()
    for text in filled.missing:
        console.print(_line(f"missing: {text}", "yellow"))
