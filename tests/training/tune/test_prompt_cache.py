"""Which tokens conversations share, so that they are computed once."""

from __future__ import annotations

from evalharness.training.tune.trainer.prompt_cache import ALIKE, shared_lengths


def _row(family: int, prompt: int, rest: list[int]) -> list[int]:
    return [family] * prompt + rest


def test_the_conversations_of_a_family_share_all_that_they_begin_with() -> None:
    rows = [
        _row(1, 300, [7, 8, 9]), _row(2, 400, [5, 5]), _row(1, 300, [7, 8, 4]), _row(2, 400, [6]), _row(3, 500, [1]),
    ]  # fmt: skip
    labels = [[-100] * (len(row) - 1) + row[-1:] for row in rows]
    found = shared_lengths(rows, labels)
    assert found == {(1,) * ALIKE: 301, (2,) * ALIKE: 399}, "one alone shares nothing"


def test_what_is_trained_and_what_predicts_it_is_never_shared() -> None:
    rows = [_row(1, 300, [7, 8, 9]), _row(1, 300, [7, 8, 4])]
    labels = [[-100] * 280 + row[280:] for row in rows]
    assert shared_lengths(rows, labels) == {(1,) * ALIKE: 279}
    assert shared_lengths(rows, [[-100] * 100 + row[100:] for row in rows]) == {}


def test_of_equal_conversations_something_is_left_to_compute() -> None:
    rows = [_row(1, 300, [])] * 2
    assert shared_lengths(rows, [[-100] * 300] * 2) == {(1,) * ALIKE: 299}
