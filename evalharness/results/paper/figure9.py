"""Figure 9: scores over the share of general data in the training set."""

from __future__ import annotations

from evalharness.results.paper.exhibit import Exhibit, Filled
from evalharness.results.paper.given import Given
from evalharness.results.paper.over import fill, runs_at

LABEL = "mixing_ratio"
TITLE = "figure 9: scores over the share of general data"


def _fill(given: Given) -> Filled:
    return fill(given, LABEL, TITLE, (), "no sentence or table of the paper states a point of it")


EXHIBIT = Exhibit(
    "figure9",
    TITLE,
    "one base model trained on agent data mixed with general conversations",
    f"evalharness run --model CKPT --tasks all --label {LABEL}=0.2, of a checkpoint of each mixture",
    lambda given: [label for label, _, _ in runs_at(given, LABEL)],
    _fill,
)
