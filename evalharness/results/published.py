"""The published tables (`results/published/*.csv`): numbers as printed, in percent."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalharness.base.paths import published_folder


@dataclass(frozen=True)
class Printed:
    """A number as the paper prints it: `40` and `40.0` have the same value and other decimals."""

    text: str

    @property
    def value(self) -> float:
        return float(self.text)

    @property
    def decimals(self) -> int:
        return len(self.text.partition(".")[2])


@dataclass(frozen=True)
class PublishedRow:
    """A row of a published table."""

    table: str
    """The file's name without `.csv`."""
    names: Mapping[str, str]
    """The text columns: `method`, `series`, `held_in`, `decoding`, ..., the paper's `table` and its `source`."""
    numbers: Mapping[str, Printed]
    """The number columns; a number that was not reported is absent."""

    @property
    def label(self) -> str:
        """`AgentGym, BoN`; the series as well where the table has any."""
        return ", ".join(self.names[key] for key in _LABELS if self.names.get(key))


_LABELS = ("series", "method", "decoding", "task", "claim", "model")
_TEXT_COLUMNS = frozenset(
    {*_LABELS, "held_in", "human", "table", "source", "domain_as_printed", "relation", "unit", "about"}
    | {"family", "measure", "protocol", "split"}
    | {"environment_construction", "trajectory_construction", "held_in_environment", "refinement_step"}
)
MAIN = "main"
OTHERS = "others"
"""Results of other papers, under other protocols, a number a row."""


def load_table(name: str) -> list[PublishedRow]:
    """The rows of a published table in its order."""
    with (published_folder() / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return [
            PublishedRow(
                table=name,
                names={key: value for key, value in row.items() if key in _TEXT_COLUMNS},
                numbers={
                    key: Printed(value) for key, value in row.items() if key not in _TEXT_COLUMNS and value
                },
            )
            for row in csv.DictReader(file)
        ]


def family_columns(rows: Sequence[PublishedRow]) -> list[str]:
    """The families of a table with columns FAMILY_success, in the order of its columns."""
    columns = dict.fromkeys(column for row in rows for column in row.numbers)
    return [column.removesuffix("_success") for column in columns if column.endswith("_success")]
