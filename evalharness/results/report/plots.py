"""Plots of runs: PNG and SVG, and the numbers of each as CSV. Needs matplotlib (the extra `plots`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalharness.base.text import printable
from evalharness.results.curves import CURVE_NAMES, DIFFICULTIES, UNPERTURBED, Row
from evalharness.results.report.looks import COLOURS
from evalharness.results.training_log import REWARD

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DASHES = ("-", "--", "-.", ":")
_LONGEST_LABEL = 60
"""Characters; a figure is not made wider for a name."""
_INCH_A_CHARACTER = 0.075
"""Of the size of letters that labels have."""


def _label(text: str) -> str:
    """One line, its middle left out where it is very long: names of models differ at their ends."""
    text = printable(text, single_line=True)
    if len(text) <= _LONGEST_LABEL:
        return text
    head = (_LONGEST_LABEL - 1) // 2
    return f"{text[:head]}…{text[-(_LONGEST_LABEL - 1 - head) :]}"


def _colour(i: int) -> str:
    return COLOURS[i % len(COLOURS)]


def _values(rows: Sequence[Row], key: str) -> list[str]:
    return list(dict.fromkeys(str(row[key]) for row in rows))


def _select(rows: Sequence[Row], **wanted: object) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _figure(width: float, height: float, title: str) -> Figure:
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    if rcParams["figure.titlesize"] != 0:
        figure.suptitle(title, fontsize=10)
    return figure


def _grid(figure: Figure, count: int, columns: int) -> list[Axes]:
    """So many panels, `columns` in a row."""
    axes = list(figure.subplots(-(-count // columns), columns, squeeze=False).flat)
    for spare in axes[count:]:
        spare.remove()
    return axes[:count]


def _family_panels(
    rows: Sequence[Row], titles: Mapping[str, str], title: str, ylabel: str
) -> tuple[Figure, dict[str, Axes]]:
    """One panel a family, at most three in a row, percent upwards."""
    families = _values(rows, "family")
    columns = min(3, len(families))
    lines = -(-len(families) // columns)
    figure = _figure(max(5.0, 3.0 * columns), 2.4 * lines + 0.9, title)
    panels = dict(zip(families, _grid(figure, len(families), columns), strict=True))
    for i, (family, axes) in enumerate(panels.items()):
        axes.set_title(_label(titles.get(family, family)))
        axes.set_ylim(0, 100)
        if i % columns == 0:
            axes.set_ylabel(ylabel)
    return figure, panels


def _measure_panels(
    rows: Sequence[Row], titles: Mapping[str, str], title: str, height: float, beside: float = 0.0
) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """Success above, progress below; a column a family. `beside`: inches that the panels' labels take."""
    families, measures = _values(rows, "family"), _values(rows, "measure")
    figure = _figure(max(5.0, 1.6 + 1.7 * len(families), beside + 1.7 * len(families)), height, title)
    grid = figure.subplots(len(measures), len(families), sharex=True, sharey=True, squeeze=False)
    for axes, family in zip(grid[0], families, strict=True):
        axes.set_title(_label(titles.get(family, family)))
    return figure, {
        (measure, family): grid[i][j]
        for i, measure in enumerate(measures)
        for j, family in enumerate(families)
    }


def _legend(figure: Figure) -> None:
    """One legend of everything drawn, below the panels."""
    shown: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            shown.setdefault(label, handle)
    if not shown:
        return
    widest = max(map(len, shown)) * _INCH_A_CHARACTER + 0.6
    columns = int(max(1, min(3, len(shown), figure.get_figwidth() // widest)))
    figure.legend(list(shown.values()), list(shown), loc="outside lower center", ncols=columns)
    # Entries below each other take their room from nobody else.
    figure.set_figheight(figure.get_figheight() + 0.17 * (-(-len(shown) // columns) - 1))


_MOST_BANDS = 3
"""In one panel; more cannot be distinguished, and lines alone are drawn."""


def _curve(
    axes: Axes, rows: Sequence[Row], x: str, y: str, colour: str, dashes: str, label: str, *, band: bool
) -> None:
    xs = [row[x] for row in rows]
    axes.plot(xs, [100 * row[y] for row in rows], dashes, color=colour, label=label, linewidth=1.7)
    if band:
        low, high = ([100 * row[end] for row in rows] for end in ("ci95_low", "ci95_high"))
        axes.fill_between(xs, low, high, color=colour, alpha=0.14, linewidth=0)


def _banded(title: str, lines: int) -> tuple[str, bool]:
    """The title of a figure with so many lines a panel, and whether they have bands."""
    band = lines <= _MOST_BANDS
    return (f"{title} (bands: 95 % over tasks)" if band else title), band


def draw_progress_by_turn(rows: Sequence[Row], titles: Mapping[str, str]) -> Figure:
    runs = _values(rows, "run")
    title, band = _banded("Mean progress after each turn", len(runs))
    figure, panels = _family_panels(rows, titles, title, "progress rate (%)")
    for family, axes in panels.items():
        for i, run in enumerate(runs):
            if own := _select(rows, family=family, run=run):
                _curve(axes, own, "turn", "progress", _colour(i), _DASHES[i % 4], _label(run), band=band)
        axes.set_xlabel("turn")
        last = max(row["turn"] for row in rows)
        axes.set_xlim(1, last)
        axes.set_xticks([1, *range(5, last + 1, -(-last // 30) * 5)])
    _legend(figure)
    return figure


def draw_difficulty(rows: Sequence[Row], titles: Mapping[str, str]) -> Figure:
    figure, panels = _measure_panels(rows, titles, "Easy and hard tasks (bars: 95 %)", 4.6)
    runs = _values(rows, "run")
    for (measure, family), axes in panels.items():
        for i, run in enumerate(runs):
            own = _select(rows, family=family, run=run, measure=measure)
            shift = (i - (len(runs) - 1) / 2) * min(0.16, 0.6 / len(runs))
            _points(axes, own, [DIFFICULTIES.index(row["difficulty"]) + shift for row in own], i, _label(run))
        axes.set_xticks([0, 1], DIFFICULTIES)
        axes.set_xlim(-0.5, 1.5)
        axes.set_ylim(0, 100)
        if family == rows[0]["family"]:
            axes.set_ylabel(f"{measure} rate (%)")
    _legend(figure)
    return figure


_MARKERS = "osD^vPX"


def _points(axes: Axes, rows: Sequence[Row], xs: Sequence[float], i: int, label: str) -> None:
    ys = [100 * row["rate"] for row in rows]
    if not ys:
        return
    # An interval over resampled values can end a rounding error short of its own mean.
    below = [max(0.0, y - 100 * row["ci95_low"]) for y, row in zip(ys, rows, strict=True)]
    above = [max(0.0, 100 * row["ci95_high"] - y) for y, row in zip(ys, rows, strict=True)]
    axes.errorbar(
        xs, ys, yerr=[below, above], fmt=_MARKERS[i % len(_MARKERS)] + _DASHES[i % 4], color=_colour(i), label=label,
        markersize=4.5, linewidth=1.2, elinewidth=1,
    )  # fmt: skip


def draw_families(rows: Sequence[Row], titles: Mapping[str, str]) -> Figure:
    """Bars a row a model: our runs in colour with intervals, published rows in grey; held-in bars hatched."""
    runs = _values(rows, "run")
    marks = ["lines: 95 %"]
    marks += ["hatched: trained on it"] if any(row["held_in"] for row in rows) else []
    marks += ["\u2020: a part of the family"] if any(row["incomplete"] for row in rows) else []
    marks += (
        ["#: labels of ours or changed tasks, another scale"]
        if any(row["own_labels"] for row in rows)
        else []
    )
    figure, panels = _measure_panels(
        rows,
        {**titles, "held_out": "held-out"},
        f"Success and progress by family ({'; '.join(marks)})",
        1.4 + 0.5 * len(runs),
        beside=max(len(_label(run)) for run in runs) * _INCH_A_CHARACTER,
    )
    published = [row["run"] for row in rows if row["source"] == "published"]
    ours = [run for run in runs if run not in published]
    for (measure, family), axes in panels.items():
        for row in _select(rows, measure=measure, family=family):
            y, x = runs.index(row["run"]), 100 * row["rate"]
            colour = _colour(ours.index(row["run"])) if row["run"] in ours else "#9a9a9a"
            hatch = "////" if row["held_in"] else None
            axes.barh(y, x, height=0.66, color=colour, edgecolor="white", linewidth=0, hatch=hatch)
            end = x
            if row["ci95_low"] is not None:  # of a published row, what the printed rate amounts to
                low, high = 100 * row["ci95_low"], 100 * row["ci95_high"]
                axes.hlines(y, low, high, color="black" if row["run"] in ours else "#555555", linewidth=1)
                end = max(x, high)
            part = ("\u2020" if row["incomplete"] else "") + ("#" if row["own_labels"] else "")
            axes.annotate(
                f"{x:.1f}{part}", (end, y), (2, 0), textcoords="offset points", va="center", fontsize=7
            )
        axes.set_yticks(range(len(runs)), [_label(run) for run in runs])
        axes.set_ylim(len(runs) - 0.5, -0.5)
        axes.set_xlim(0, 100)
        axes.set_xticks([0, 50, 100])
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(f"{measure} rate (%)")
    return figure


def draw_best_of_k(rows: Sequence[Row], titles: Mapping[str, str]) -> Figure:
    """One run: a colour a curve. Several: a colour a run, dashes a curve."""
    runs = _values(rows, "run")
    title, band = _banded("k samples of a task", len(runs) * len(CURVE_NAMES))
    figure, panels = _family_panels(rows, titles, title, "rate (%)")
    for family, axes in panels.items():
        for i, run in enumerate(runs):
            for j, (curve, name) in enumerate(CURVE_NAMES.items()):
                own = _select(rows, family=family, run=run, curve=curve)
                if own:
                    label = name if len(runs) == 1 else f"{_label(run)}: {name}"
                    colour = _colour(j if len(runs) == 1 else i)
                    _curve(axes, own, "k", "rate", colour, _DASHES[j], label, band=band)
        ks = [row["k"] for row in _select(rows, family=family)]
        axes.set_xlabel("k")
        axes.set_xlim(1, max(ks))
        axes.set_xticks(sorted(set(ks))[:: -(-max(ks) // 10)])
    _legend(figure)
    return figure


def spread(values: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Where to write labels for points at these heights: in their order, `apart` from each other, within low..high
    as far as there is room."""
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
    """A slope from the unperturbed rate to the rate under each perturbation; a row a run and family."""
    panels = list(
        dict.fromkeys((row["run"], row["family"]) for row in rows if row["perturbation"] != UNPERTURBED)
    )
    measures = _values(rows, "measure")
    drawn = [(run, family, measure) for run, family in panels for measure in measures]
    # A line a run; runs with one measure each stand beside each other.
    columns = len(measures) if len(measures) > 1 else min(3, len(drawn))
    lines = -(-len(drawn) // columns)
    figure = _figure(
        3.6 * columns, 3.1 * lines + 0.4, "Scores without and with the perturbation (lines: 95 %)"
    )
    names = [name for name in _values(rows, "perturbation") if name != UNPERTURBED]
    for axes, (run, family, measure) in zip(_grid(figure, len(drawn), columns), drawn, strict=True):
        own = _select(rows, run=run, family=family, measure=measure)
        axes.set_title(f"{_label(titles.get(family, family))}: {_label(run)}")
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
    shown = [name for name in names if name in rates]
    ends = [rates[name] for name in shown]
    for name, end, height in zip(shown, ends, spread(ends, 7.5, 3, 97), strict=True):
        i = names.index(name)
        xs, ys = ([0, 1], [start, end]) if start is not None else ([1], [end])
        axes.plot(
            xs, ys, color=_colour(i), linestyle=_DASHES[i % 4], marker=_MARKERS[i % len(_MARKERS)],
            markersize=4, linewidth=1.4,
        )  # fmt: skip
        if name in limits:  # beside each other: they overlap
            axes.plot([1 - 0.02 * i] * 2, limits[name], color=_colour(i), linewidth=1, alpha=0.6)
        axes.plot([1.04, 1.12], [end, height], color="#bbbbbb", linewidth=0.6)
        axes.annotate(f"{_label(name)}  {end:.1f}", (1.14, height), va="center", fontsize=8, color=_colour(i))
    if UNPERTURBED in limits:
        axes.plot([0, 0], limits[UNPERTURBED], color="black", linewidth=1, alpha=0.6)
    if start is not None:
        axes.annotate(f"{start:.1f}", (0, start), (-0.06, start), ha="right", va="center", fontsize=8)
    axes.set_xlim(-0.28, 1.75)
    axes.set_ylim(0, 100)
    axes.set_xticks([0, 1], ["unperturbed", "perturbed"])
    axes.grid(visible=False, axis="x")


def draw_over(rows: Sequence[Row], titles: Mapping[str, str]) -> Figure:
    """Success and progress of each family over a training's step, or over what the runs were labelled with."""
    axis = str(rows[0]["axis"])
    figure, panels = _family_panels(rows, titles, f"By {_label(axis)} (bars: 95 %)", "rate (%)")
    series, measures = _values(rows, "series"), _values(rows, "measure")
    xs = sorted({float(row["x"]) for row in rows if row["measure"] != REWARD})
    for family, axes in panels.items():
        for i, name in enumerate(series):
            for j, measure in enumerate(measures):
                own = _select(rows, family=family, series=name, measure=measure)
                if measure == REWARD:  # of the training: no rate, and no interval
                    if own:
                        axes.plot([row["x"] for row in own], [row["rate"] for row in own], color=_colour(2))
                        axes.set_ylim(auto=True)
                        axes.autoscale_view()
                        axes.set_ylabel("mean reward")
                    continue
                label = f"{_label(name)}: {measure}" if len(series) > 1 else measure
                _points(axes, own, [float(row["x"]) for row in own], len(measures) * i + j, label)
        axes.set_xlabel(_label(axis))
        if REWARD not in measures and xs[0] > 0 and xs[-1] >= 8 * xs[0]:  # sizes of data double; steps do not
            axes.set_xscale("log", base=2)
            axes.set_xticks(xs, [f"{x:g}" for x in xs], rotation=45 if len(xs) > 5 else 0)
            axes.minorticks_off()
    _legend(figure)
    return figure


DRAW = {
    "scaling": draw_over,
    "progress_by_turn": draw_progress_by_turn,
    "difficulty": draw_difficulty,
    "families": draw_families,
    "best_of_k": draw_best_of_k,
    "perturbations": draw_perturbations,
}
"""Name of a plot and its files -> how it is drawn."""
