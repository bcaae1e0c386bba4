"""Figure 11: errors in a row in training data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalharness.base.text import printable
from evalharness.results.paper.exhibit import Exhibit, Filled
from evalharness.results.paper.given import Given, each_read
from evalharness.results.paper.published import load_table
from evalharness.results.paper.table import Cell, Column, Row, Table
from evalharness.results.report.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "figure 11: errors in a row, as shares of the turns"
_KEYS = {"share_of_turns": "of all turns", "share_of_player_turns": "of player turns"}


def published_share() -> float:
    """Percent of all turns that are in runs of one error, about, as a sentence says."""
    [claim] = [row for row in load_table("text_claims") if "figure 11" in row.names.get("about", "")]
    return claim.numbers["value"].value


def draw(named: Sequence[tuple[str, Mapping[str, Any]]]) -> Figure:
    """Two bars a run length, share of all turns and share of player turns; a panel a data set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.8 * len(named), 3.2), layout="constrained")
    panels = figure.subplots(1, len(named), squeeze=False)[0]
    for axes, (name, found) in zip(panels, named, strict=True):
        rows = found["rows"]
        for number, (key, label) in enumerate(_KEYS.items()):
            places = [index + (number - 0.5) * 0.38 for index in range(len(rows))]
            values = [100 * row[key] for row in rows]
            bars = axes.bar(places, values, 0.36, color=COLOURS[number], label=label)
            axes.bar_label(bars, fmt="%.1f", fontsize=7, padding=1)
        about = published_share()
        axes.plot(
            [-0.4, 0.0], [about, about], "--", color="black", linewidth=1, label=f"published: about {about:g}"
        )
        axes.set_xticks(range(len(rows)), [row["run_length"] for row in rows])
        axes.set_xlabel("errors in a row")
        axes.set_ylabel("share of turns (%)")
        title = f"Error turns of {found['samples']:,} conversations"
        axes.set_title(f"{printable(name, single_line=True)}\n{title}" if name else title)
        axes.legend()
    return figure


def _fill(given: Given) -> Filled:
    columns = tuple(
        Column(f"{length}_{key}", name, f"{length} in a row")
        for length in ("1", "2", "3", "more")
        for key, name in _KEYS.items()
    )
    rows = [Row("AgentRefine (32,000)", {"1_share_of_turns": Cell(published_share(), text="about 16")})]
    named: list[tuple[str, Mapping[str, Any]]] = []
    problems = list(given.left_out)
    for path, found in each_read(given.data, given.measured.error_turns, problems):
        named.append((path.name, found))
        cells = {f"{row['run_length']}_{key}": Cell(100 * row[key]) for row in found["rows"] for key in _KEYS}
        rows.append(Row(f"{path.name} ({found['samples']:,})", cells, source="data", folder=str(path)))
    note = "published: a sentence about runs of one; the other bars are in the picture alone"
    table = Table(TITLE, columns, tuple(rows), "%", (note,))
    return Filled((table,), tuple(problems), (lambda: draw(named)) if named else None)


EXHIBIT = Exhibit(
    "figure11",
    TITLE,
    "how many turns of a training set are in runs of one, two, three and more errors",
    "evalharness refine; give the data set's file",
    lambda given: [path.name for path in given.data],
    _fill,
)
