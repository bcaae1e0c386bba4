"""Figure 5: scores over the size of the training set."""

from __future__ import annotations

from evalharness.results.paper.exhibit import Exhibit, Filled
from evalharness.results.paper.given import Given
from evalharness.results.paper.over import PublishedPoint, fill, runs_at
from evalharness.results.paper.published import MAIN

LABEL = "data_size"
TITLE = "figure 5: scores over the size of the training set"
POINTS = (
    PublishedPoint(4000, "synthesis_models", {"method": "AgentRefine-GPT-4o (4000 data)"}),
    PublishedPoint(8000, "ablation", {"method": "AgentRefine (8000 data)"}),
    PublishedPoint(32000, MAIN, {"series": "LLaMA-3-8B", "method": "AgentRefine"}),
)
"""The sizes that a table of the paper has; 32,000 is its default."""


def _fill(given: Given) -> Filled:
    return fill(
        given, LABEL, TITLE, POINTS, "published: sizes that are in a table (2, 7 and 1); the others are not"
    )


EXHIBIT = Exhibit(
    "figure5",
    TITLE,
    "one base model trained on 4,000, 8,000, ... conversations",
    f"evalharness run --model CKPT --tasks all --label {LABEL}=8000, of a checkpoint of each size",
    lambda given: [label for label, _, _ in runs_at(given, LABEL)],
    _fill,
)
