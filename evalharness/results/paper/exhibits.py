"""All exhibits of the paper, in the order of the list."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evalharness.base.errors import UserError, nearest
from evalharness.results.paper import (
    figure1,
    figure3,
    figure5,
    figure6,
    figure7,
    figure9,
    figure11,
    hotpotqa,
    judge,
    mtbench,
    table1,
    table2,
    table3,
    table4,
    table5,
    table6,
    table7,
)
from evalharness.results.paper.exhibit import Exhibit

_MODULES = (
    *(table1, table2, table3, table4, table5, table6, table7),
    *(figure1, figure3, figure5, figure6, figure7, figure9, figure11),
    *(judge, mtbench, hotpotqa),
)
EXHIBITS: Mapping[str, Exhibit] = {module.EXHIBIT.name: module.EXHIBIT for module in _MODULES}
"""Name -> exhibit."""


def find_exhibit(text: str) -> Exhibit:
    """By its name; `fig5` and `Table 2` do as well. Raises UserError, with the nearest name."""
    name = re.sub(r"^fig(?:ure)?\.?(?=\d)", "figure", re.sub(r"[\s_-]", "", text.lower()))
    if name not in EXHIBITS:
        raise UserError(f"{text}: no such exhibit{nearest(name, list(EXHIBITS))} (all: evalharness paper)")
    return EXHIBITS[name]
