"""The interval of a standard deviation between conditions."""

from __future__ import annotations

import numpy as np
import pytest

from evalharness.stats import spread_interval


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_it_covers_where_conditions_are_equal_and_where_they_differ(spread: float) -> None:
    draw = np.random.default_rng(6)
    held = 0
    for _ in range(100):
        moved = spread * draw.standard_normal(6)

        def chances(tasks: int, moved: np.ndarray = moved) -> np.ndarray:
            return 1 / (1 + np.exp(-(1.5 * draw.standard_normal((tasks, 1)) + moved)))

        chance = chances(134)
        low, high = spread_interval((draw.random(chance.shape) < chance).astype(float))
        held += low - 1e-9 <= chances(20_000).mean(axis=0).std() <= high
    assert held >= 88


def test_equal_columns_have_no_spread() -> None:
    assert spread_interval(np.tile([[0.0], [1.0], [0.5]], (1, 4))) == (0.0, 0.0)
