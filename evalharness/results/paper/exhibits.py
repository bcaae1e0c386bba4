"""All exhibits of the paper, in the order of the list."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evalharness.base.errors import UserError, nearest
from evalharness.results.paper import (
    figure1,
    figure3,
    figure6,
    figure7,
    figure11,
    hotpotqa,
    judge,
    mtbench,
    table3,
    table4,
    table5,
    table6,
)
from evalharness.results.paper.exhibit import Exhibit
from evalharness.results.paper.family_exhibits import FIGURE5, FIGURE9, TABLE1, TABLE2, TABLE7

_LISTED = (
    *(TABLE1, TABLE2, table3.EXHIBIT, table4.EXHIBIT, table5.EXHIBIT, table6.EXHIBIT, TABLE7),
    *(figure1.EXHIBIT, figure3.EXHIBIT, FIGURE5, figure6.EXHIBIT, figure7.EXHIBIT, FIGURE9, figure11.EXHIBIT),
    *(judge.EXHIBIT, mtbench.EXHIBIT, hotpotqa.EXHIBIT),
)
EXHIBITS: Mapping[str, Exhibit] = {exhibit.name: exhibit for exhibit in _LISTED}
"""Name -> exhibit."""


def find_exhibit(text: str) -> Exhibit:
    """By its name; `fig5` and `Table 2` do as well. Raises UserError, with the nearest name."""
    name = re.sub(r"^fig(?:ure)?\.?(?=\d)", "figure", re.sub(r"[\s_-]", "", text.lower()))
    if name not in EXHIBITS:
        raise UserError(f"{text}: no such exhibit{nearest(name, list(EXHIBITS))} (all: evalharness paper)")
    return EXHIBITS[name]
