"""Which conversations are trained side by side: every one once, those that begin alike together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalharness.tune.trainer.batches import (
    IGNORED,
    LEAST_SHARED,
    alike,
    common_tokens,
    context_length,
    order,
    packed,
    shared_tokens,
)

ids = st.lists(st.integers(0, 3), max_size=30)


@given(ids, ids)
def test_common_tokens_are_those_that_a_comparison_one_by_one_finds(
    first: list[int], second: list[int]
) -> None:
    wanted = next(
        (place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
    assert common_tokens(packed(first), packed(second)) == wanted


def test_the_context_ends_before_the_token_that_predicts_the_first_trained_one() -> None:
    assert context_length([IGNORED] * 5 + [7, 8]) == 4
    assert context_length([IGNORED, 7]) == 0
    assert context_length([7]) == 0
    assert context_length([IGNORED] * 3) == 2


def test_conversations_are_alike_by_their_beginnings() -> None:
    one, other = list(range(100)), list(range(1000, 1100))
    contexts = [packed(c) for c in ([*one, 1], other, [*one, 2, 3], [*other, 9], one[: LEAST_SHARED - 1])]
    found = alike(contexts)
    assert sorted(map(sorted, found)) == [[0, 2], [1, 3], [4]]
    assert shared_tokens([contexts[0], contexts[2]]) == 100


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=5),
    st.integers(1, 5),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_every_conversation_comes_once_an_epoch_and_whole_micro_batches_come_first(
    sizes: list[int], micro: int, seed: int, epoch: int
) -> None:
    families, at = [], 0
    for size in sizes:
        families.append(list(range(at, at + size)))
        at += size
    drawn = order(families, [7 * index % 11 for index in range(at)], micro, seed, epoch)
    assert sorted(drawn) == list(range(at))
    assert drawn == order(families, [7 * index % 11 for index in range(at)], micro, seed, epoch)
    owner = {index: number for number, family in enumerate(families) for index in family}
    batches = [drawn[start : start + micro] for start in range(0, at, micro)]
    of_one_family = sum(
        len({owner[index] for index in batch}) == 1 for batch in batches if len(batch) == micro
    )
    assert of_one_family >= sum(size // micro for size in sizes)


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    families = [list(range(30)), list(range(30, 60))]
    orders = {tuple(order(families, [1] * 60, 4, seed, epoch)) for seed in (0, 1) for epoch in (0, 1)}
    assert len(orders) == 4
