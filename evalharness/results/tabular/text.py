"""Print a table. The width of the terminal decides where intervals are: beside or below the numbers, or separately."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Literal

from rich.console import Console
from rich.table import Table as Drawn
from rich.text import Text

from evalharness.base.grouping import group_by_key
from evalharness.base.terminal import console_for, line, remark
from evalharness.base.text import printable
from evalharness.results.tabular.table import EMPTY, Cell, Column, Row, Table

OURS = "<"
Mode = Literal["behind", "below", "none"]
"""Where intervals are printed: behind the number, below the number, or not in this table."""
_MODES: tuple[Mode, ...] = ("behind", "below")
_NAME = 19
"""Minimum width of the column of names and one space. If less is left for the names, the table is split."""


def _number(row: Row, column: Column) -> str:
    """Return the number with its marks; a held-in cell has a star."""
    cell = row.cell(column)
    star = "*" if column.key in row.underlined and cell.value is not None else ""
    return printable(cell.shown(column, marks=False) + star + cell.marks, single_line=True)


def _limits(cell: Cell, column: Column, mode: Mode) -> str:
    """Return the interval of a number as text after it or below it."""
    if cell.ci95 is None:
        return ""
    if mode == "behind":
        return f" [{cell.interval(column)}]"
    return f"\n{cell.interval(column, ' to ' if cell.ci95[0] < 0 else '-')}"


def _texts(table: Table, mode: Mode) -> list[list[str]]:
    """Return the heading and the cells of each column as texts, padded so that the numbers are aligned."""
    columns, before = [], ""
    for column in table.columns:
        numbers = [_number(row, column) for row in table.rows]
        marks = [len(text) - len(text.rstrip("*()#\u2020\u2021\u2248~")) for text in numbers]
        padded = [text + " " * (max(marks) - n) for text, n in zip(numbers, marks, strict=True)]
        if mode != "none":
            cells = [row.cell(column) if row.ours else EMPTY for row in table.rows]
            limits = [_limits(cell, column, mode) for cell in cells]
            if mode == "behind":  # so that numbers are aligned
                limits = [text.ljust(max(map(len, limits))) for text in limits]
            padded = [text + ends for text, ends in zip(padded, limits, strict=True)]
        heading = "\n".join(
            part for part in ("" if column.group == before else column.group, column.name) if part
        )
        before = column.group
        columns.append([printable(heading), *padded])
    return columns


def _longest(table: Table) -> int:
    """Return the width of the longest name of a row with its indentation and marks."""
    around = 2 * any(row.group for row in table.rows) + (1 if all(row.ours for row in table.rows) else 3)
    return max((len(row.name + row.marks) + around for row in table.rows), default=around)


def _fits(table: Table, console: Console, mode: Mode) -> bool:
    """Return whether the table fits into the console if long names are wrapped at the width that `mode` allows."""
    longest = _longest(table)
    name = min(longest, 2 * _NAME if mode == "behind" else _NAME)
    lines = (max(len(line) for text in column for line in text.split("\n")) for column in _texts(table, mode))
    return name + sum(width + 1 for width in lines) - 1 <= console.width


def _draw(table: Table, mode: Mode) -> Drawn:
    drawn = Drawn(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    drawn.add_column(line(table.first), overflow="fold", min_width=min(_longest(table), _NAME) - 1)
    headings, *lines = zip(*_texts(table, mode), strict=True) if table.columns else [()]
    for heading in headings:
        drawn.add_column(Text(heading), justify="right", no_wrap=True)
    cells = dict(zip(map(id, table.rows), lines, strict=True))
    all_ours = all(row.ours for row in table.rows)
    for group, rows in group_by_key((row.group, row) for row in table.rows).items():
        if group:
            drawn.add_row(line(group, "dim"))
        for row in rows:
            mark = f" {OURS}" if row.ours and not all_ours else ""
            name = ("  " if group else "") + row.name + row.marks + mark
            drawn.add_row(
                line(name), *map(Text, cells[id(row)]), style="bold" if row.ours and not all_ours else None
            )
    return drawn


def _interval_tables(table: Table) -> Iterator[Drawn]:
    """Yield a table of intervals for each run of the user, with one line per group of columns (family)."""
    by_group = len(table.groups) > 1
    groups = table.groups if by_group else [column.name for column in table.columns]
    names = list(dict.fromkeys(c.name for c in table.columns)) if by_group else [""]
    for row in table.rows:
        if not row.ours or not any(cell.ci95 for cell in row.cells.values()):
            continue
        drawn = Drawn(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
        drawn.add_column(line(row.name), overflow="fold")
        for name in names:
            drawn.add_column(line(f"{name} [95 % CI]".strip()), justify="right", no_wrap=True)
        for group in groups:
            columns = [c for c in table.columns if (c.group if by_group else c.name) == group]
            if all(row.cell(column).value is None for column in columns):
                continue
            limits = [f" [{row.cell(c).interval(c)}]" if row.cell(c).ci95 else "" for c in columns]
            texts = [_number(row, c) + ends for c, ends in zip(columns, limits, strict=True)]
            drawn.add_row(line(group), *map(line, texts))
        yield drawn


def print_table(console: Console, table: Table, *, explain: bool = True, gap: bool = True) -> None:
    """Print one table if the console is wide enough, otherwise one table per measure. `explain`: print that `<` marks
    the user's runs. `gap`: print an empty line after each table."""
    table = table.without_empty()
    if table.title:
        console.print(line(table.title, "bold"), soft_wrap=True)
    whole = _fits(table, console, "none") or len(table.groups) < 2
    parts = [table] if whole else table.by_name()
    fitting = (mode for mode in _MODES if all(_fits(part, console, mode) for part in parts))
    mode: Mode = next(fitting, "none")
    drawn = [_draw(part, mode) for part in parts]
    if mode == "none":
        turned = all(row.ours for row in table.rows) and not all(_fits(part, console, mode) for part in parts)
        drawn = [*([] if turned else drawn), *_interval_tables(table)]
    for each in drawn:
        console.print(each)
        if gap:
            console.print()
    if explain and any(row.ours for row in table.rows) and not all(row.ours for row in table.rows):
        remark(console, f"{OURS} ours")
    for note in table.notes:
        remark(console, note)


def text_of(show: Callable[[Console], None], width: int = 80) -> str:
    """Return the text that `show` prints to a console of this width."""
    buffer = io.StringIO()
    show(console_for(buffer, width=width))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"
