"""The prompt that conversations begin with, computed once for several steps and without gradients.

The conversations of a family begin with the same instruction and example, about half of their tokens. Their keys and
values are kept for a few steps, in which the weights hardly change; what a conversation adds is computed on top of
them. No gradient passes through the prompt. Measured on two cores: results/measured/README.md.

Run by the training environment's Python; needs nothing of this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ALIKE = 256
"""Conversations whose first so many tokens are the same share all that they begin with."""


def shared_lengths(
    rows: Sequence[Sequence[int]], labels: Sequence[Sequence[int]]
) -> dict[tuple[int, ...], int]:
    """First tokens -> how many tokens all the conversations with these share, none of them trained."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, ids in enumerate(rows):
        groups.setdefault(tuple(ids[:ALIKE]), []).append(index)
    found = {}
    for start, members in groups.items():
        if len(members) < 2:
            continue
        same = [tuple(rows[index]) for index in members]
        # The token before the first trained one predicts it.
        untrained = min(_untrained(labels[index]) for index in members) - 1
        shared = min(_alike(min(same), max(same)), untrained)
        if shared >= ALIKE:
            found[start] = shared
    return found


def _alike(one: Sequence[int], other: Sequence[int]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _untrained(labels: Sequence[int]) -> int:
    return next((at for at, label in enumerate(labels) if label != -100), len(labels))


class SharedPrompts:
    """Keys and values of each prompt, as old as `steps` steps at most."""

    def __init__(self, lengths: dict[tuple[int, ...], int], steps: int) -> None:
        self.lengths, self.steps = lengths, steps
        self.kept: dict[tuple[int, ...], tuple[int, list[tuple[Any, Any]]]] = {}

    def cut(self, model: Any, inputs: dict[str, Any], step: int) -> dict[str, Any]:
        """The inputs of one conversation without its prompt, which stands in the cache that goes with them."""
        import torch  # type: ignore[import-not-found, unused-ignore]
        from transformers import DynamicCache  # type: ignore[import-not-found, unused-ignore]

        ids = inputs["input_ids"]
        start = tuple(ids[0, :ALIKE].tolist())
        length = self.lengths.get(start)
        if length is None:
            return inputs
        made, pairs = self.kept.get(start, (-self.steps, []))
        if step - made >= self.steps:
            with torch.no_grad():
                cache = model(input_ids=ids[:, :length], use_cache=True, logits_to_keep=1).past_key_values
            pairs = [(layer.keys, layer.values) for layer in cache.layers]
            self.kept[start] = (step, pairs)
        cache = DynamicCache()
        for layer, (keys, values) in enumerate(pairs):
            cache.update(keys, values, layer)
        return {
            **inputs,
            "input_ids": ids[:, length:],
            "labels": inputs["labels"][:, length:],
            "past_key_values": cache,
        }
