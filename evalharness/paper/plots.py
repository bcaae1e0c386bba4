"""Draw figure 1 (families as bars) and figure 3 (slopes under perturbations). Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evalharness.results.curves import UNPERTURBED, Row
from evalharness.results.figures.plots import (
    DASHES,
    INCH_A_CHARACTER,
    MARKERS,
    add_legend,
    colour,
    make_figure,
    measure_panels,
    panel_grid,
    select_rows,
    short_label,
    values_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_PUBLISHED = "#9a9a9a"


def draw_families(rows: Sequence[Row], titles: Mapping[str, str]) -> Figure:
    """Draw a bar for each model: our runs in colour with intervals, published rows in grey, held-in bars hatched."""
    runs = values_of(rows, "run")
    figure, panels = measure_panels(
        rows,
        {**titles, "held_out": "held-out"},
        "Success and progress by family",
        1.4 + 0.5 * len(runs),
        beside=max(len(short_label(run)) for run in runs) * INCH_A_CHARACTER,
    )
    published = [row["run"] for row in rows if row["source"] == "published"]
    ours = [run for run in runs if run not in published]
    for (measure, family), axes in panels.items():
        for row in select_rows(rows, measure=measure, family=family):
            y, x = runs.index(row["run"]), 100 * row["rate"]
            shade = colour(ours.index(row["run"])) if row["run"] in ours else _PUBLISHED
            hatch = "////" if row["held_in"] else None
            axes.barh(y, x, height=0.66, color=shade, edgecolor="white", linewidth=0, hatch=hatch)
            end = x
            if row["ci95_low"] is not None:  # a published row's interval is computed from the printed rate
                low, high = 100 * row["ci95_low"], 100 * row["ci95_high"]
                axes.hlines(y, low, high, color="black" if row["run"] in ours else "#555555", linewidth=1)
                end = max(x, high)
            part = ("\u2020" if row["incomplete"] else "") + ("#" if row["own_labels"] else "")
            axes.annotate(
                f"{x:.1f}{part}", (end, y), (2, 0), textcoords="offset points", va="center", fontsize=7
            )
        axes.set_yticks(range(len(runs)), [short_label(run) for run in runs])
        axes.set_ylim(len(runs) - 0.5, -0.5)
        axes.set_xlim(0, 100)
        axes.set_xticks([0, 50, 100])
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(f"{measure} rate (%)")
    _explain_marks(next(iter(panels.values())), rows)
    add_legend(figure)
    return figure


def _explain_marks(axes: Axes, rows: Sequence[Row]) -> None:
    """Add a legend entry for each kind of bar and each mark that the figure has."""
    bars = {
        "published": any(row["source"] == "published" for row in rows),
        "trained on the family": any(row["held_in"] for row in rows),
    }
    for label, shown in bars.items():
        if shown:
            hatch = "////" if label.startswith("trained") else None
            axes.barh(0, 0, color=_PUBLISHED, edgecolor="white", linewidth=0, hatch=hatch, label=label)
    axes.plot([], [], color="black", linewidth=1, label="95 % interval")
    marks = {
        "\u2020  a part of the family": any(row["incomplete"] for row in rows),
        "#  own labels or changed tasks: another scale": any(row["own_labels"] for row in rows),
        "\u2021  not made like the published rows": any("\u2021" in row["run"] for row in rows),
    }
    for label, shown in marks.items():
        if shown:
            axes.plot([], [], linestyle="", label=label)


def spread(values: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Return heights for text labels, near `values`: in the order of `values`, at least `apart` from each other, and
    within low..high if there is room."""
    order = sorted(range(len(values)), key=lambda i: (values[i], i))
    heights = [0.0] * len(values)
    below = low - apart
    for i in order:
        below = heights[i] = max(values[i], below + apart)
    above = max(high, low + apart * (len(values) - 1)) + apart
    for i in reversed(order):
        above = heights[i] = min(heights[i], above - apart)
    return heights


def draw_perturbations(rows: Sequence[Row], titles: Mapping[str, str]) -> Figure:
    """Draw a slope from the unperturbed rate to the rate under each perturbation, in a row for each run and family."""
    panels = list(
        dict.fromkeys((row["run"], row["family"]) for row in rows if row["perturbation"] != UNPERTURBED)
    )
    measures = values_of(rows, "measure")
    drawn = [(run, family, measure) for run, family in panels for measure in measures]
    # Start a row of panels for each run and family; if there is one measure, put up to three panels in a row.
    columns = len(measures) if len(measures) > 1 else min(3, len(drawn))
    lines = -(-len(drawn) // columns)
    figure = make_figure(
        3.6 * columns, 3.1 * lines + 0.4, "Scores without and with the perturbation (lines: 95 %)"
    )
    names = [name for name in values_of(rows, "perturbation") if name != UNPERTURBED]
    for axes, (run, family, measure) in zip(panel_grid(figure, len(drawn), columns), drawn, strict=True):
        own = select_rows(rows, run=run, family=family, measure=measure)
        axes.set_title(f"{short_label(titles.get(family, family))}: {short_label(run)}")
        axes.set_ylabel(f"{measure} rate (%)")
        _slopes(axes, own, names)
    return figure


def _slopes(axes: Axes, rows: Sequence[Row], names: Sequence[str]) -> None:
    rates = {row["perturbation"]: 100 * row["rate"] for row in rows}
    limits = {
        row["perturbation"]: [100 * row["ci95_low"], 100 * row["ci95_high"]]
        for row in rows
        if row["ci95_low"] is not None
    }
    start = rates.pop(UNPERTURBED, None)
    drawn = [name for name in names if name in rates]
    ends = [rates[name] for name in drawn]
    for name, end, height in zip(drawn, ends, spread(ends, 7.5, 3, 97), strict=True):
        i = names.index(name)
        xs, ys = ([0, 1], [start, end]) if start is not None else ([1], [end])
        axes.plot(
            xs, ys, color=colour(i), linestyle=DASHES[i % 4], marker=MARKERS[i % len(MARKERS)],
            markersize=4, linewidth=1.4,
        )  # fmt: skip
        if name in limits:  # draw intervals side by side, because they overlap
            axes.plot([1 - 0.02 * i] * 2, limits[name], color=colour(i), linewidth=1, alpha=0.6)
        axes.plot([1.04, 1.12], [end, height], color="#bbbbbb", linewidth=0.6)
        axes.annotate(
            f"{short_label(name)}  {end:.1f}", (1.14, height), va="center", fontsize=8, color=colour(i)
        )
    if UNPERTURBED in limits:
        axes.plot([0, 0], limits[UNPERTURBED], color="black", linewidth=1, alpha=0.6)
    if start is not None:
        axes.annotate(f"{start:.1f}", (0, start), (-0.06, start), ha="right", va="center", fontsize=8)
    axes.set_xlim(-0.28, 1.75)
    axes.set_ylim(0, 100)
    axes.set_xticks([0, 1], ["unperturbed", "perturbed"])
    axes.grid(visible=False, axis="x")
