"""The error-turn figure of training data: shares of turns in runs of one, two, three and more errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalharness.results.report.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from evalharness.training.datasets.stats import ErrorTurns


def draw_error_turns(found: ErrorTurns) -> Figure:
    """Two bars a run length: share of all turns, share of player turns."""
    from matplotlib.figure import Figure

    rows = found.rows()
    figure = Figure(figsize=(4.8, 3.2), layout="constrained")
    axes = figure.subplots()
    for number, (key, label) in enumerate(
        (("share_of_turns", "of all turns"), ("share_of_player_turns", "of player turns"))
    ):
        places = [index + (number - 0.5) * 0.38 for index in range(len(rows))]
        bars = axes.bar(places, [100 * row[key] for row in rows], 0.36, color=COLOURS[number], label=label)
        axes.bar_label(bars, fmt="%.1f", fontsize=7, padding=1)
    axes.set_xticks(range(len(rows)), [row["run_length"] for row in rows])
    axes.set_xlabel("errors in a row")
    axes.set_ylabel("share of turns (%)")
    axes.set_title(f"Error turns of {found.samples:,} conversations")
    axes.legend()
    return figure
