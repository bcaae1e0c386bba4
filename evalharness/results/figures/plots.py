"""Draw plots of runs. Needs matplotlib (the extra `plots`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalharness.base.text import printable
from evalharness.results.curves import CURVE_NAMES, DIFFICULTIES, Row
from evalharness.results.figures.looks import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DASHES = ("-", "--", "-.", ":")
_LONGEST_LABEL = 60
"""Maximum length of a label in characters, so that a long name does not make the figure wider."""
INCH_A_CHARACTER = 0.075
"""Approximate width of a character in a label, in inches."""


def short_label(text: str) -> str:
    """Return the label as one line. Cut the middle of a long label, because names of models differ at their ends."""
    text = printable(text, single_line=True)
    if len(text) <= _LONGEST_LABEL:
        return text
    head = (_LONGEST_LABEL - 1) // 2
    return f"{text[:head]}…{text[-(_LONGEST_LABEL - 1 - head) :]}"


def colour(i: int) -> str:
    return COLOURS[i % len(COLOURS)]


def values_of(rows: Sequence[Row], key: str) -> list[str]:
    return list(dict.fromkeys(str(row[key]) for row in rows))


def select_rows(rows: Sequence[Row], **wanted: object) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def make_figure(width: float, height: float, title: str) -> Figure:
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    if rcParams["figure.titlesize"] != 0:
        figure.suptitle(title, fontsize=10)
    return figure


def panel_grid(figure: Figure, count: int, columns: int) -> list[Axes]:
    """Return `count` panels, `columns` in each row."""
    axes = list(figure.subplots(-(-count // columns), columns, squeeze=False).flat)
    for spare in axes[count:]:
        spare.remove()
    return axes[:count]


def _family_panels(
    rows: Sequence[Row], titles: Mapping[str, str], title: str, ylabel: str
) -> tuple[Figure, dict[str, Axes]]:
    """Make one panel per family, at most three in a row; the y axis is in percent."""
    families = values_of(rows, "family")
    columns = min(3, len(families))
    lines = -(-len(families) // columns)
    figure = make_figure(max(5.0, 3.0 * columns), 2.4 * lines + 0.9, title)
    panels = dict(zip(families, panel_grid(figure, len(families), columns), strict=True))
    for i, (family, axes) in enumerate(panels.items()):
        axes.set_title(short_label(titles.get(family, family)))
        axes.set_ylim(0, 100)
        if i % columns == 0:
            axes.set_ylabel(ylabel)
    return figure, panels


def measure_panels(
    rows: Sequence[Row], titles: Mapping[str, str], title: str, height: float, beside: float = 0.0
) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """Make a panel per measure (row) and family (column). `beside`: inches that labels beside the panels need."""
    families, measures = values_of(rows, "family"), values_of(rows, "measure")
    figure = make_figure(max(5.0, 1.6 + 1.7 * len(families), beside + 1.7 * len(families)), height, title)
    grid = figure.subplots(len(measures), len(families), sharex=True, sharey=True, squeeze=False)
    for axes, family in zip(grid[0], families, strict=True):
        axes.set_title(short_label(titles.get(family, family)))
    return figure, {
        (measure, family): grid[i][j]
        for i, measure in enumerate(measures)
        for j, family in enumerate(families)
    }


def add_legend(figure: Figure) -> None:
    """Add one legend for all panels below them."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if not handles:
        return
    widest = max(map(len, handles)) * INCH_A_CHARACTER + 0.6
    columns = int(max(1, min(3, len(handles), figure.get_figwidth() // widest)))
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns)
    # Make the figure higher by the rows of the legend, so that the panels keep their size.
    figure.set_figheight(figure.get_figheight() + 0.17 * (-(-len(handles) // columns) - 1))


_MOST_BANDS = 3
"""Maximum number of interval bands in one panel. More bands cannot be distinguished, so only lines are drawn."""


def _curve(
    axes: Axes, rows: Sequence[Row], x: str, y: str, colour: str, dashes: str, label: str, *, band: bool
) -> None:
    xs = [row[x] for row in rows]
    axes.plot(xs, [100 * row[y] for row in rows], dashes, color=colour, label=label, linewidth=1.7)
    if band:
        low, high = ([100 * row[end] for row in rows] for end in ("ci95_low", "ci95_high"))
        axes.fill_between(xs, low, high, color=colour, alpha=0.14, linewidth=0)


def _title_with_bands(title: str, lines: int) -> tuple[str, bool]:
    """Return (title, whether to draw interval bands) for a figure with `lines` lines per panel."""
    band = lines <= _MOST_BANDS
    return (f"{title} (bands: 95 % over tasks)" if band else title), band


def draw_progress_by_turn(rows: Sequence[Row], titles: Mapping[str, str]) -> Figure:
    runs = values_of(rows, "run")
    title, band = _title_with_bands("Mean progress after each turn", len(runs))
    figure, panels = _family_panels(rows, titles, title, "progress rate (%)")
    for family, axes in panels.items():
        for i, run in enumerate(runs):
            if own := select_rows(rows, family=family, run=run):
                _curve(axes, own, "turn", "progress", colour(i), DASHES[i % 4], short_label(run), band=band)
        axes.set_xlabel("turn")
        last = max(row["turn"] for row in rows)
        axes.set_xlim(1, last)
        axes.set_xticks([1, *range(5, last + 1, -(-last // 30) * 5)])
    add_legend(figure)
    return figure


def draw_difficulty(rows: Sequence[Row], titles: Mapping[str, str]) -> Figure:
    figure, panels = measure_panels(rows, titles, "Easy and hard tasks (bars: 95 %)", 4.6)
    runs = values_of(rows, "run")
    for (measure, family), axes in panels.items():
        for i, run in enumerate(runs):
            own = select_rows(rows, family=family, run=run, measure=measure)
            shift = (i - (len(runs) - 1) / 2) * min(0.16, 0.6 / len(runs))
            _points(
                axes, own, [DIFFICULTIES.index(row["difficulty"]) + shift for row in own], i, short_label(run)
            )
        axes.set_xticks([0, 1], DIFFICULTIES)
        axes.set_xlim(-0.5, 1.5)
        axes.set_ylim(0, 100)
        if family == rows[0]["family"]:
            axes.set_ylabel(f"{measure} rate (%)")
    add_legend(figure)
    return figure


MARKERS = "osD^vPX"


def _points(axes: Axes, rows: Sequence[Row], xs: Sequence[float], i: int, label: str) -> None:
    ys = [100 * row["rate"] for row in rows]
    if not ys:
        return
    # A bar must not be negative: by rounding errors, the mean may lie outside its bootstrap interval.
    below = [max(0.0, y - 100 * row["ci95_low"]) for y, row in zip(ys, rows, strict=True)]
    above = [max(0.0, 100 * row["ci95_high"] - y) for y, row in zip(ys, rows, strict=True)]
    axes.errorbar(
        xs, ys, yerr=[below, above], fmt=MARKERS[i % len(MARKERS)] + DASHES[i % 4], color=colour(i), label=label,
        markersize=4.5, linewidth=1.2, elinewidth=1,
    )  # fmt: skip


def draw_best_of_k(rows: Sequence[Row], titles: Mapping[str, str]) -> Figure:
    """Draw the curves over k. Each curve has its own dashes; each run has its own colour, or each curve if one run."""
    runs = values_of(rows, "run")
    title, band = _title_with_bands("k samples of a task", len(runs) * len(CURVE_NAMES))
    figure, panels = _family_panels(rows, titles, title, "rate (%)")
    for family, axes in panels.items():
        for i, run in enumerate(runs):
            for j, (curve, name) in enumerate(CURVE_NAMES.items()):
                own = select_rows(rows, family=family, run=run, curve=curve)
                if own:
                    label = name if len(runs) == 1 else f"{short_label(run)}: {name}"
                    shade = colour(j if len(runs) == 1 else i)
                    _curve(axes, own, "k", "rate", shade, DASHES[j], label, band=band)
        ks = [row["k"] for row in select_rows(rows, family=family)]
        axes.set_xlabel("k")
        axes.set_xlim(1, max(ks))
        axes.set_xticks(sorted(set(ks))[:: -(-max(ks) // 10)])
    add_legend(figure)
    return figure


def draw_over(rows: Sequence[Row], titles: Mapping[str, str]) -> Figure:
    """Draw success and progress of each family over the training step, or over the values of a label of the runs."""
    axis = str(rows[0]["axis"])
    figure, panels = _family_panels(rows, titles, f"By {short_label(axis)} (bars: 95 %)", "rate (%)")
    series, measures = values_of(rows, "series"), values_of(rows, "measure")
    xs = sorted({float(row["x"]) for row in rows})
    for family, axes in panels.items():
        for i, name in enumerate(series):
            for j, measure in enumerate(measures):
                own = select_rows(rows, family=family, series=name, measure=measure)
                label = f"{short_label(name)}: {measure}" if len(series) > 1 else measure
                _points(axes, own, [float(row["x"]) for row in own], len(measures) * i + j, label)
        axes.set_xlabel(short_label(axis))
        if xs[0] > 0 and xs[-1] >= 8 * xs[0]:  # a wide range, such as sizes of data sets
            axes.set_xscale("log", base=2)
            axes.set_xticks(xs, [f"{x:g}" for x in xs], rotation=45 if len(xs) > 5 else 0)
            axes.minorticks_off()
    add_legend(figure)
    return figure


DRAW = {
    "progress_by_turn": draw_progress_by_turn,
    "difficulty": draw_difficulty,
    "best_of_k": draw_best_of_k,
}
"""Name of a plot (and of its files, without their endings) -> function that draws the plot."""
