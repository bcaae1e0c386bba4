"""Which conversations are trained side by side: drawn at random each epoch, every one once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalharness.training.tune.trainer.batches import (
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


many_families = st.lists(st.integers(1, 12), min_size=1, max_size=5)


@given(many_families, st.integers(1, 9), st.integers(0, 3), st.integers(0, 3))
def test_every_conversation_comes_once_an_epoch_and_a_batch_has_its_families_side_by_side(
    sizes: list[int], batch: int, seed: int, epoch: int
) -> None:
    families, at = [], 0
    for size in sizes:
        families.append(list(range(at, at + size)))
        at += size
    lengths = [7 * index % 11 for index in range(at)]
    drawn = order(families, lengths, batch, seed, epoch)
    assert sorted(drawn) == list(range(at))
    assert drawn == order(families, lengths, batch, seed, epoch)
    owner = {index: number for number, family in enumerate(families) for index in family}
    for start in range(0, at, batch):
        owners = [owner[index] for index in drawn[start : start + batch]]
        assert owners == sorted(owners)


KINDS_OF_DATA = {
    "all begin alike": [list(range(200))],
    "nothing in common": [[index] for index in range(200)],
    "families of several sizes": [list(range(130)), list(range(130, 195)), [195], [196], [197, 198, 199]],
}


@pytest.mark.parametrize("kind", KINDS_OF_DATA)
def test_batches_are_drawn_anew_each_epoch_from_all_of_the_data(kind: str) -> None:
    """Which conversations share a step, not only in which order steps come; and by chance, not by family or token
    ids."""
    families, batch = KINDS_OF_DATA[kind], 8

    def batches(seed: int, epoch: int) -> set[frozenset[int]]:
        drawn = order(families, [index % 13 for index in range(200)], batch, seed, epoch)
        assert sorted(drawn) == list(range(200))
        return {frozenset(drawn[start : start + batch]) for start in range(0, 200, batch)}

    found = [batches(seed, epoch) for seed in (0, 1) for epoch in range(4)]
    for number, first in enumerate(found):
        assert all(not first & other for other in found[number + 1 :])
    for drawn in found:
        together = sum(any({index, index + 1} <= group for group in drawn) for index in range(199))
        assert together < 30  # 7.0 expected; 199 - 24 where batches are cut out of the token order
