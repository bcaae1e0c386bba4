"""Which conversations are trained in one step, drawn at random each epoch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalharness.training.tune.trainer.batches import draw_order


@given(st.lists(st.integers(1, 11), max_size=60), st.integers(1, 9), st.integers(0, 3), st.integers(0, 3))
def test_every_conversation_comes_once_an_epoch_the_short_ones_of_a_batch_first(
    lengths: list[int], batch: int, seed: int, epoch: int
) -> None:
    drawn = draw_order(lengths, batch, seed, epoch)
    assert sorted(drawn) == list(range(len(lengths)))
    assert drawn == draw_order(lengths, batch, seed, epoch)
    for start in range(0, len(lengths), batch):
        sizes = [lengths[index] for index in drawn[start : start + batch]]
        assert sizes == sorted(sizes)


def test_batches_are_drawn_anew_each_epoch_from_all_of_the_data() -> None:
    """Which conversations share a step, not only in which order steps come; and by chance, not by place or length."""

    def batches(seed: int, epoch: int) -> set[frozenset[int]]:
        drawn = draw_order([index % 13 for index in range(200)], 8, seed, epoch)
        return {frozenset(drawn[start : start + 8]) for start in range(0, 200, 8)}

    found = [batches(seed, epoch) for seed in (0, 1) for epoch in range(4)]
    for number, first in enumerate(found):
        assert all(not first & other for other in found[number + 1 :])
    for drawn in found:
        together = sum(any({index, index + 1} <= group for group in drawn) for index in range(199))
        assert together < 30  # 7.0 expected; 199 - 24 where batches are cut out of the files' order
