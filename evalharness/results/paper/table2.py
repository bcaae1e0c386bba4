"""Table 2: the ablations of refinement tuning."""

from __future__ import annotations

from evalharness.results.paper.exhibit import Exhibit, Filled
from evalharness.results.paper.family_table import fill, labels_in
from evalharness.results.paper.given import Given, plain

LABEL = "mode"
TITLE = "table 2: ablation of refinement tuning"


def _fill(given: Given) -> Filled:
    return fill(plain(given), "ablation", TITLE)


EXHIBIT = Exhibit(
    "table2",
    TITLE,
    "one base model trained with and without refinement's loss, refinement's data, and loss of erroneous turns",
    f"evalharness run --model CKPT --tasks all --label {LABEL}=no_refine_loss, of a checkpoint of each mode",
    lambda given: labels_in(plain(given, LABEL)),
    _fill,
)
