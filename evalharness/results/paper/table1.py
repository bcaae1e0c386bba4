"""Table 1: methods and models on all families."""

from __future__ import annotations

from evalharness.results.paper.exhibit import Exhibit, Filled
from evalharness.results.paper.family_table import fill, labels_in
from evalharness.results.paper.given import Given, plain
from evalharness.results.paper.published import MAIN

TITLE = "table 1: main results"


def _fill(given: Given) -> Filled:
    return fill(plain(given), MAIN, TITLE)


EXHIBIT = Exhibit(
    "table1",
    TITLE,
    "success and progress of methods and models on the five families",
    "evalharness run --model CKPT --tasks all",
    lambda given: labels_in(plain(given)),
    _fill,
)
