"""The root of a function is that of scipy's."""

from __future__ import annotations

from math import exp

import pytest
from scipy.optimize import brentq

from evalharness.stats.root import find_root


@pytest.mark.parametrize("target", [1e-9, 0.3, 0.999, 50.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_it_is_found_where_the_function_rises_and_where_it_falls(target: float, sign: int) -> None:
    def missing(x: float) -> float:
        return sign * (exp(x) - exp(target))

    assert find_root(missing, 1e-12, 60.0) == pytest.approx(
        brentq(missing, 1e-12, 60.0, xtol=1e-15), rel=1e-6
    )
    assert abs(find_root(missing, 1e-12, 60.0, xtol=0.1) - target) <= 0.1
