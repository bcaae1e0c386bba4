"""Which conversations are trained in one step, drawn at random each epoch, and how many are computed at a time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalharness.training.tune.trainer.batches import RefusedError, micro_batch, order, trained_parameters


@given(st.lists(st.integers(1, 11), max_size=60), st.integers(1, 9), st.integers(0, 3), st.integers(0, 3))
def test_every_conversation_comes_once_an_epoch_the_short_ones_of_a_batch_first(
    lengths: list[int], batch: int, seed: int, epoch: int
) -> None:
    drawn = order(lengths, batch, seed, epoch)
    assert sorted(drawn) == list(range(len(lengths)))
    assert drawn == order(lengths, batch, seed, epoch)
    for start in range(0, len(lengths), batch):
        sizes = [lengths[index] for index in drawn[start : start + batch]]
        assert sizes == sorted(sizes)


def test_batches_are_drawn_anew_each_epoch_from_all_of_the_data() -> None:
    """Which conversations share a step, not only in which order steps come; and by chance, not by place or length."""

    def batches(seed: int, epoch: int) -> set[frozenset[int]]:
        drawn = order([index % 13 for index in range(200)], 8, seed, epoch)
        return {frozenset(drawn[start : start + 8]) for start in range(0, 200, 8)}

    found = [batches(seed, epoch) for seed in (0, 1) for epoch in range(4)]
    for number, first in enumerate(found):
        assert all(not first & other for other in found[number + 1 :])
    for drawn in found:
        together = sum(any({index, index + 1} <= group for group in drawn) for index in range(199))
        assert together < 30  # 7.0 expected; 199 - 24 where batches are cut out of the files' order


def chosen(processes: int = 1, **other: Any) -> int:
    return micro_batch({"batch": 12, "micro_batch": 0, **other}, processes)


def test_a_micro_batch_divides_a_processs_part_of_the_batch() -> None:
    assert chosen() == chosen(2) == 1
    assert chosen(2, micro_batch=2) == 2


@pytest.mark.parametrize("other", [{"batch": 3}, {"micro_batch": 4}, {"batch": 1}])
def test_what_cannot_be_divided_over_the_processes_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(RefusedError):
        chosen(2, **other)


@pytest.mark.parametrize(
    "path", ["base_model.model.model.layers.{}.mlp", "transformer.h.{}.attn", "transformer.blocks.{}.ffn"]
)
def test_the_upper_layers_are_found_by_their_numbers(path: str) -> None:
    names = [f"{path.format(layer)}.lora_A.weight" for layer in range(12)]
    assert trained_parameters(["wte.weight", *names, "lm_head.weight"], 12, 2) == set(names[10:])
    assert trained_parameters(names, 12, 20) == set(names)


def test_layers_without_numbers_are_refused() -> None:
    with pytest.raises(RefusedError, match="leave --top-layers out"):
        trained_parameters(["first.weight", "second.weight"], 2, 1)
