"""Draw the lengths of error sequences in a training set (AgentRefine, figure 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalharness.base.text import printable
from evalharness.results.figures.looks import COLOURS
from evalharness.results.published import load_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = {"share_of_turns": "of all turns", "share_of_player_turns": "of player turns"}


def read_published_share() -> float:
    """Return the approximate percentage of turns that are errors not followed or preceded by another one."""
    [claim] = [row for row in load_table("text_claims") if "figure 11" in row.names.get("about", "")]
    return claim.numbers["value"].value


def draw_error_runs(named: Sequence[tuple[str, Mapping[str, Any]]]) -> Figure:
    """Draw a panel for each data set. Each length of an error sequence has two bars: its share of all turns, and its
    share of the player's turns."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.8 * len(named), 3.2), layout="constrained")
    panels = figure.subplots(1, len(named), squeeze=False)[0]
    for axes, (name, error_turns) in zip(panels, named, strict=True):
        rows = error_turns["rows"]
        for number, (key, label) in enumerate(SHARES.items()):
            places = [index + (number - 0.5) * 0.38 for index in range(len(rows))]
            values = [100 * row[key] for row in rows]
            bars = axes.bar(places, values, 0.36, color=COLOURS[number], label=label)
            axes.bar_label(bars, fmt="%.1f", fontsize=7, padding=1)
        about = read_published_share()
        axes.plot(
            [-0.4, 0.0], [about, about], "--", color="black", linewidth=1, label=f"published: about {about:g}"
        )
        axes.set_xticks(range(len(rows)), [row["run_length"] for row in rows])
        axes.set_xlabel("errors in a row")
        axes.set_ylabel("share of turns (%)")
        title = f"Error turns of {error_turns['samples']:,} conversations"
        axes.set_title(f"{printable(name, single_line=True)}\n{title}" if name else title)
        axes.legend()
    return figure
