"""Read the published tables (`results/published/*.csv`), whose numbers are in percent as the papers print them."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalharness.base.paths import find_published_folder


@dataclass(frozen=True)
class Printed:
    """A number with the decimals that the paper prints, for example `40` or `40.0`."""

    text: str

    @property
    def value(self) -> float:
        return float(self.text)

    @property
    def decimals(self) -> int:
        return len(self.text.partition(".")[2])


@dataclass(frozen=True)
class PublishedRow:
    table: str
    """The file's name without `.csv`."""
    names: Mapping[str, str]
    """The text columns: `method`, `series`, `held_in`, `decoding`, ..., the paper's `table` and its `source`."""
    numbers: Mapping[str, Printed]
    """The number columns, without the numbers that the paper does not report."""

    @property
    def label(self) -> str:
        """The text columns that identify the row, joined: for example `AgentGym, BoN`."""
        return ", ".join(self.names[key] for key in _LABELS if self.names.get(key))


_LABELS = ("series", "method", "decoding", "task", "claim", "model")
_TEXT_COLUMNS = frozenset(
    {*_LABELS, "held_in", "human", "table", "source", "domain_as_printed", "relation", "unit", "about"}
    | {"family", "measure", "protocol", "split"}
    | {"environment_construction", "trajectory_construction", "held_in_environment", "refinement_step"}
)
MAIN = "main"
OTHERS = "others"
"""Name of the table of results from other papers with other protocols; it has one number per row."""
DEMO = "demo"
"""Name of the table of the demo model's results on the published suite; it has the columns of the main table."""


def load_table(name: str, folder: Path | None = None) -> list[PublishedRow]:
    """Read the rows of a table in the order of the file. `folder`: None for the folder of published tables."""
    with ((folder or find_published_folder()) / f"{name}.csv").open(newline="", encoding="utf-8") as file:
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
    """Return the families that have a column FAMILY_success, in the order of the columns."""
    columns = dict.fromkeys(column for row in rows for column in row.numbers)
    return [column.removesuffix("_success") for column in columns if column.endswith("_success")]
