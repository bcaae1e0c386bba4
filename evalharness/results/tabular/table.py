"""A table as a person reads it: columns in groups, rows of several sources, marks, intervals. Numbers only; `text` and
`markup` write it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from evalharness.results.difference import Difference

Source = Literal["published", "run", "difference", "other", "suite", "data"]
"""Whose row it is: the paper's, ours, of two of ours, or of another paper under another protocol."""
Interval = tuple[float, float]


@dataclass(frozen=True)
class Column:
    """A column of numbers, or of words."""

    key: str
    name: str
    """`success`; the second line of the heading where there is a group."""
    group: str = ""
    """`BabyAI`; the first line of the heading."""
    decimals: int = 1
    signed: bool = False


@dataclass(frozen=True)
class Cell:
    """What stands in one place of a table."""

    value: float | None = None
    """In the unit of the table: percent, points, a score, a count."""
    ci95: Interval | None = None
    marks: str = ""
    """Behind the number."""
    text: str | None = None
    """Shown instead of the value; words of a published row, for instance."""
    test: Difference | None = None
    """Of a cell that is a paired difference."""
    comparison: str = ""
    """Which two runs `test` compares: tests of one comparison stand in several cells, and in several tables."""

    def shown(self, column: Column, *, marks: bool = True) -> str:
        if self.text is not None:
            return self.text + (self.marks if marks else "")
        if self.value is None:
            return "-"
        number = f"{self.value:{'+' if column.signed else ''}.{column.decimals}f}"
        return number + (self.marks if marks else "")

    def interval(self, column: Column, between: str = ", ") -> str:
        """`36.6, 53.2`; "" where there is none."""
        if self.ci95 is None:
            return ""
        return between.join(f"{end:.{column.decimals}f}" for end in self.ci95)


EMPTY = Cell()
_P_VALUES = ("p", "p_holm", "p_by_kind")


@dataclass(frozen=True)
class Row:
    """One row."""

    name: str
    cells: Mapping[str, Cell]
    """Key of a column -> what stands there; a column that is missing is empty."""
    group: str = ""
    """What stands above the rows of a group: a base model, say."""
    source: Source = "published"
    marks: str = ""
    """Behind the name."""
    about: tuple[str, ...] = ()
    """Protocol of a row, a phrase each: for the legend."""
    folder: str | None = None
    underlined: frozenset[str] = frozenset()
    """Columns of families that the method was trained on."""

    def cell(self, column: Column) -> Cell:
        return self.cells.get(column.key, EMPTY)

    @property
    def ours(self) -> bool:
        return self.source not in ("published", "other", "suite")


@dataclass(frozen=True)
class Table:
    """Columns and rows, and what has to be known to read them."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    first: str = ""
    """Heading of the names."""
    notes: tuple[str, ...] = ()

    @property
    def groups(self) -> list[str]:
        return list(dict.fromkeys(column.group for column in self.columns))

    def without_empty(self) -> Table:
        """Without columns in which no row has anything."""
        kept = (column for column in self.columns if any(row.cell(column) != EMPTY for row in self.rows))
        return replace(self, columns=tuple(kept))

    def by_name(self) -> list[Table]:
        """A table for each name of a column, `success` and `progress`, whose columns are the groups."""
        names = list(dict.fromkeys(column.name for column in self.columns))
        columns = {
            name: [replace(c, name=c.group, group="") for c in self.columns if c.name == name]
            for name in names
        }
        return [Table(self.title, tuple(listed), self.rows, name) for name, listed in columns.items()]

    def flat(self) -> list[dict[str, Any]]:
        """A flat row for each row, in the units shown; None where there is no number."""
        rows = []
        for row in self.rows:
            flat: dict[str, Any] = {
                "group": row.group, "name": row.name, "source": row.source, "protocol": "; ".join(row.about),
                "folder": row.folder,
            }  # fmt: skip
            for column in self.columns:
                cell = row.cell(column)
                flat[column.key] = cell.value if cell.text is None or cell.value is not None else cell.text
                flat[f"{column.key}_marks"] = cell.marks + ("*" if column.key in row.underlined else "")
                flat[f"{column.key}_ci95_low"], flat[f"{column.key}_ci95_high"] = cell.ci95 or (None, None)
                for p in _P_VALUES:
                    flat[f"{column.key}_{p}"] = getattr(cell.test, p, None)
            rows.append(flat)
        # Words and counts have neither marks nor intervals: no column that is empty in every row.
        empty = {
            key
            for key in (rows[0] if rows else ())
            if key.endswith(("_marks", "_ci95_low", "_ci95_high", *(f"_{p}" for p in _P_VALUES)))
            and all(row[key] in (None, "") for row in rows)
        }
        return [{key: value for key, value in row.items() if key not in empty} for row in rows]

    def to_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "columns": [{"key": c.key, "group": c.group, "name": c.name} for c in self.columns],
            "rows": self.flat(),
            "notes": list(self.notes),
        }


def percent_cell(value: float | None, limits: Sequence[float] | None = None, marks: str = "") -> Cell:
    """Of a fraction 0..1."""
    if value is None:
        return EMPTY
    ends = None if limits is None else (100 * limits[0], 100 * limits[1])
    return Cell(100 * value, ends, marks)
