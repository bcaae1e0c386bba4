"""Table 7: data synthesised by another model."""

from __future__ import annotations

from evalharness.results.paper.exhibit import Exhibit, Filled
from evalharness.results.paper.family_table import fill, labels_in
from evalharness.results.paper.given import Given, plain

LABEL = "synthesis_model"
TITLE = "table 7: data synthesised by another model"


def _fill(given: Given) -> Filled:
    return fill(plain(given), "synthesis_models", TITLE)


EXHIBIT = Exhibit(
    "table7",
    TITLE,
    "one base model trained on 4,000 conversations that another model wrote",
    f"evalharness run --model CKPT --tasks all --label {LABEL}=NAME, of a checkpoint of each writer",
    lambda given: labels_in(plain(given, LABEL)),
    _fill,
)
