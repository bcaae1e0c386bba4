"""Draw maps of thoughts and heatmaps of similarity. Needs matplotlib (the extra `diversity`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evalharness.base.text import printable
from evalharness.results.figures.looks import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKERS = "os^Dv<>pP"


def shorten(text: str, length: int = 40) -> str:
    text = printable(text, single_line=True)
    return text if len(text) <= length else f"{text[: length - 1]}…"


def draw_thoughts(rows: Sequence[Mapping[str, Any]], lines: Sequence[str], embedding: str) -> Figure:
    """Draw a point for each distinct thought, larger if the thought is frequent. Each source has a colour and a
    marker."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 6.4), layout="constrained")
    axes = figure.subplots()
    sources = list(dict.fromkeys(row["source"] for row in rows))
    size = float(np.clip(4000 / len(rows), 4, 30))
    for i, (source, line) in enumerate(zip(sources, lines, strict=True)):
        own = [row for row in rows if row["source"] == source]
        axes.scatter(
            [row["x"] for row in own], [row["y"] for row in own],
            s=[size * row["count"] ** 0.5 for row in own], alpha=0.6, linewidths=0,
            color=COLOURS[i % len(COLOURS)], marker=_MARKERS[i % len(_MARKERS)], label=shorten(line, 70),
        )  # fmt: skip
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set_title(f"t-SNE of thoughts ({embedding})")
    figure.legend(loc="outside lower center", ncols=1, markerscale=2)
    return figure


def draw_similarity(rows: Sequence[Mapping[str, Any]], embedding: str) -> Figure:
    """Draw the cosine similarity of each pair of sources as a matrix, with numbers in large enough cells."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["first"] for row in rows))
    n = len(names)
    values = np.array([row["similarity"] for row in rows], dtype=float).reshape(n, n)  # None becomes NaN
    side = float(np.clip(2.6 + 0.42 * n, 4, 11))
    figure = Figure(figsize=(side + 0.8, side), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(values, cmap="cividis", vmin=min(0.0, float(np.nanmin(values))), vmax=1)
    labels = [shorten(name, 28) for name in names]
    if n <= 40:
        axes.set_xticks(range(n), labels, rotation=90)
        axes.set_yticks(range(n), labels)
    if n <= 14:
        for i in range(n):
            for j in range(n):
                colour = "black" if values[i, j] > 0.5 else "white"
                text = "-" if np.isnan(values[i, j]) else f"{values[i, j]:.2f}"
                axes.text(j, i, text, ha="center", va="center", color=colour, fontsize=7)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    figure.colorbar(image, shrink=0.7, label="cosine similarity")
    axes.set_title(f"Similarity of data and environments\n({embedding})")
    return figure
