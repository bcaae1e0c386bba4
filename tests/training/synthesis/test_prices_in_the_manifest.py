"""A session's prices are read again in every form in which they were ever written."""

from __future__ import annotations

import pytest

from evalharness.records.cost import Prices
from evalharness.training.synthesis.synthesis_store import _Session


@pytest.mark.parametrize(
    "prices",
    [None, [None, None], [1.0, 2.0], Prices(input=1.0, output=2.0, input_cache_read=0.5).model_dump()],
)
def test_a_session_is_read_with_the_prices_it_was_written_with(prices: object) -> None:
    assert _Session.model_validate({"wanted": 1, "prices": prices}).wanted == 1
