"""Exhibits with a row a model: families as columns (tables 1, 2, 7), and over a number (figures 5, 9)."""

from __future__ import annotations

from collections.abc import Sequence

from evalharness.results.paper.exhibit import Exhibit
from evalharness.results.paper.family_table import fill, labels_in
from evalharness.results.paper.given import plain
from evalharness.results.paper.over import PublishedPoint, runs_at
from evalharness.results.paper.over import fill as fill_over
from evalharness.results.paper.published import MAIN

_RUN = "evalharness run --model CKPT --tasks all"


def _table(name: str, published: str, title: str, shows: str, label: str = "", each: str = "") -> Exhibit:
    """`published`: its table; `label`: what the runs in it are labelled with, `each` of what."""
    title = f"{name[:-1]} {name[-1]}: {title}"
    return Exhibit(
        name,
        title,
        shows,
        f"{_RUN} --label {label}, of a checkpoint of each {each}" if label else _RUN,
        lambda given: labels_in(plain(given, label.partition("=")[0] or None)),
        lambda given: fill(plain(given), published, title),
    )


def _curve(
    name: str, published: Sequence[PublishedPoint], title: str, shows: str, note: str, label: str, each: str
) -> Exhibit:
    """As `_table`, with the number in `label` as the axis."""
    title, key = f"{name[:-1]} {name[-1]}: {title}", label.partition("=")[0]
    return Exhibit(
        name,
        title,
        shows,
        f"{_RUN} --label {label}, of a checkpoint of each {each}",
        lambda given: [run for run, _, _ in runs_at(given, key)],
        lambda given: fill_over(given, key, title, published, note),
    )


TABLE1 = _table(
    "table1", MAIN, "main results", "success and progress of methods and models on the five families"
)
TABLE2 = _table(
    "table2",
    "ablation",
    "ablation of refinement tuning",
    "one base model trained with and without refinement's loss, refinement's data, and loss of erroneous turns",
    "mode=no_refine_loss",
    "mode",
)
TABLE7 = _table(
    "table7",
    "synthesis_models",
    "data synthesised by another model",
    "one base model trained on 4,000 conversations that another model wrote",
    "synthesis_model=NAME",
    "writer",
)
FIGURE5 = _curve(
    "figure5",
    # The sizes that a table of the paper has; 32,000 is its default.
    (
        PublishedPoint(4000, "synthesis_models", {"method": "AgentRefine-GPT-4o (4000 data)"}),
        PublishedPoint(8000, "ablation", {"method": "AgentRefine (8000 data)"}),
        PublishedPoint(32000, MAIN, {"series": "LLaMA-3-8B", "method": "AgentRefine"}),
    ),
    "scores over the size of the training set",
    "one base model trained on 4,000, 8,000, ... conversations",
    "published: sizes that are in a table (2, 7 and 1); the others are not",
    "data_size=8000",
    "size",
)
FIGURE9 = _curve(
    "figure9",
    (),
    "scores over the share of general data",
    "one base model trained on agent data mixed with general conversations",
    "no sentence or table of the paper states a point of it",
    "mixing_ratio=0.2",
    "mixture",
)
