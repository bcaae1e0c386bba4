"""All exhibits of the paper in order, and their output for a terminal and for a report's page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.base.errors import UserError, nearest
from evalharness.base.terminal import line, remark
from evalharness.paper import hotpotqa_table
from evalharness.paper.data_exhibits import FIGURE6, FIGURE7, FIGURE11, TABLE6
from evalharness.paper.exhibit import Exhibit, Filled
from evalharness.paper.family_exhibits import (
    FIGURE1,
    FIGURE5,
    FIGURE9,
    TABLE1,
    TABLE2,
    TABLE5,
    TABLE7,
)
from evalharness.paper.judged import JUDGE, MTBENCH
from evalharness.paper.perturbed import FIGURE3, TABLE3
from evalharness.paper.sampled import TABLE4
from evalharness.results.tabular.text import print_table

_LISTED = (
    *(TABLE1, TABLE2, TABLE3, TABLE4, TABLE5, TABLE6, TABLE7),
    *(FIGURE1, FIGURE3, FIGURE5, FIGURE6, FIGURE7, FIGURE9, FIGURE11),
    *(JUDGE, MTBENCH, hotpotqa_table.EXHIBIT),
)
EXHIBITS: Mapping[str, Exhibit] = {exhibit.name: exhibit for exhibit in _LISTED}


def find_exhibit(text: str) -> Exhibit:
    """Find an exhibit by its name, also written as `fig5` or `Table 2`. Raises UserError with the nearest name."""
    name = re.sub(r"^fig(?:ure)?\.?(?=\d)", "figure", re.sub(r"[\s_-]", "", text.lower()))
    if name not in EXHIBITS:
        raise UserError(f"{text}: no such exhibit{nearest(name, list(EXHIBITS))} (all: evalharness paper)")
    return EXHIBITS[name]


def print_exhibits(console: Console, entries: Sequence[Mapping[str, Any]], left_out: Sequence[str]) -> None:
    """Print the list of exhibits. `entries` has the result of `Exhibit.to_json` for each."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in entries:
        title = re.sub("^(table|figure) .*?: ", "", row["title"])
        table.add_row(Text(row["name"], style="bold"), Text(title, style="bold"))
        table.add_row("", line(row["shows"]))
        if row["filled_by"]:
            table.add_row("", line(f"filled by: {', '.join(row['filled_by'])}", "green"))
        what = "missing" if row["filled_by"] else "fill it"
        for missing in row["missing"]:
            table.add_row("", line(f"{what}: {missing}", "dim"))
    console.print(table)
    remark(
        console,
        "numbers of the first preprint; in the published version table 5 is table7, figure 10 is judge",
    )
    for why in left_out:
        console.print(line(f"left out: {why}", "yellow"))


def print_filled(console: Console, filled: Filled) -> None:
    """Print an exhibit's tables, and the missing data."""
    for table in filled.tables:
        print_table(console, table)
        console.print()
    for text in filled.missing:
        console.print(line(f"missing: {text}", "yellow"), soft_wrap=True)
