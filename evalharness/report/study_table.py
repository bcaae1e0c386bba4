"""What the tables of studies share."""

from __future__ import annotations

from rich.table import Table


def percent(value: float | None) -> str:
    """A fraction as percent; "-" where there is none."""
    return "-" if value is None else f"{100 * value:.1f}"


def plain_table(*names: str) -> Table:
    """Columns of these names, numbers to the right; the nameless one is of labels."""
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    for name in names:
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    return table
