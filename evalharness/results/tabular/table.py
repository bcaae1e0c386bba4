"""Define a table with grouped columns, intervals, and marks. `text` prints it; `markup` writes Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from evalharness.results.difference import Difference

Source = Literal["published", "measured", "run", "difference", "other", "suite", "data"]
"""Source of a row: the main paper, the demo model's table, a run, two runs, another paper, a suite, or a data set."""
Interval = tuple[float, float]


@dataclass(frozen=True)
class Column:
    """A column of numbers, or of words."""

    key: str
    name: str
    """Heading, for example `success`."""
    group: str = ""
    """Heading above the columns of a group, for example `BabyAI`; "" for a column without a group."""
    decimals: int = 1
    signed: bool = False


@dataclass(frozen=True)
class Cell:
    value: float | None = None
    """The number in the unit of the table: percent, points, a score, or a count."""
    ci95: Interval | None = None
    marks: str = ""
    """Symbols after the number that refer to a note, for example that the family is incomplete."""
    text: str | None = None
    """Text printed instead of the value, for example words of a published row."""
    test: Difference | None = None
    """The test of a paired difference; None if the cell is not a difference."""
    comparison: str = ""
    """Text that identifies the two runs that `test` compares. Cells with the same text are from one comparison."""

    def shown(self, column: Column, *, marks: bool = True) -> str:
        if self.text is not None:
            return self.text + (self.marks if marks else "")
        if self.value is None:
            return "-"
        number = f"{self.value:{'+' if column.signed else ''}.{column.decimals}f}"
        return number + (self.marks if marks else "")

    def interval(self, column: Column, between: str = ", ") -> str:
        """Return the ends of the interval: `36.6, 53.2`; "" if there is none."""
        if self.ci95 is None:
            return ""
        return between.join(f"{end:.{column.decimals}f}" for end in self.ci95)


EMPTY = Cell()
_P_VALUES = ("p", "p_holm", "p_by_kind")


@dataclass(frozen=True)
class Row:
    name: str
    cells: Mapping[str, Cell]
    """Key of a column -> cell; a missing column is empty."""
    group: str = ""
    """Heading above the rows of a group, for example a base model."""
    source: Source = "published"
    marks: str = ""
    """Symbols after the name that refer to a note."""
    about: tuple[str, ...] = ()
    """Phrases about the row's protocol."""
    folder: str | None = None
    underlined: frozenset[str] = frozenset()
    """Keys of the columns of families that the method was trained on; their numbers are underlined or have a star."""

    def cell(self, column: Column) -> Cell:
        return self.cells.get(column.key, EMPTY)

    @property
    def ours(self) -> bool:
        return self.source not in ("published", "measured", "other", "suite")


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    first: str = ""
    """Heading of the first column, which has the names of the rows."""
    notes: tuple[str, ...] = ()

    @property
    def groups(self) -> list[str]:
        return list(dict.fromkeys(column.group for column in self.columns))

    def without_empty(self) -> Table:
        """Return the table without empty columns."""
        kept = (column for column in self.columns if any(row.cell(column) != EMPTY for row in self.rows))
        return replace(self, columns=tuple(kept))

    def by_name(self) -> list[Table]:
        """Return a table per column name (`success`, `progress`), with one column per group (family)."""
        names = list(dict.fromkeys(column.name for column in self.columns))
        columns = {
            name: [replace(c, name=c.group, group="") for c in self.columns if c.name == name]
            for name in names
        }
        return [Table(self.title, tuple(listed), self.rows, name) for name, listed in columns.items()]

    def flat(self) -> list[dict[str, Any]]:
        """Return each row as a dictionary with the numbers in the units of the table; a missing number is None."""
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
        # Drop columns of marks, intervals and p values that are empty in every row.
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
    """Return a cell in percent for a fraction 0..1."""
    if value is None:
        return EMPTY
    ends = None if limits is None else (100 * limits[0], 100 * limits[1])
    return Cell(100 * value, ends, marks)
