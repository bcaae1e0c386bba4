"""The loss of a micro-batch and its gradients: over trained tokens alone, a beginning that conversations share computed
once, and memory for a few conversations at a time, however many a micro-batch has.

Run by the training environment's Python; needs nothing of this package.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
from batches import (  # type: ignore[import-not-found, unused-ignore]
    IGNORED,
    LEAST_SHARED,
    alike,
    context_length,
    packed,
    shared_tokens,
)
from torch.nn.functional import cross_entropy  # type: ignore[import-not-found, unused-ignore]

_GROWING = ("DynamicLayer", "DynamicSlidingWindowLayer")
"""Kinds of cache whose layers hold keys and values; states of other kinds cannot be handed to several conversations."""


def unshareable(model: Any) -> str | None:
    """What the model keeps of tokens read, where that cannot be handed to several conversations; None where it can."""
    with torch.no_grad():
        cache = model(input_ids=torch.tensor([[0, 0]], device=model.device), use_cache=True).past_key_values
    kinds = {type(layer).__name__ for layer in getattr(cache, "layers", [cache])}
    return ", ".join(sorted(kinds - set(_GROWING))) or None


@contextmanager
def _only_at(head: Any, wanted: Any) -> Iterator[None]:
    """Within, the output layer sees only the hidden states where `wanted` is true, as one row: the logits of a
    vocabulary of 49,000 at every position would be most of the memory."""

    def select(module: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        hidden = arguments[0]
        return (hidden[:, : wanted.shape[1]][wanted].unsqueeze(0), *arguments[1:])

    handle = head.register_forward_pre_hook(select)
    try:
        yield
    finally:
        handle.remove()


def plain_loss(model: Any, head: Any, ids: Any, labels: Any, **given: Any) -> Any:
    """Sum of the negative log-likelihoods of the trained tokens. Rows are padded at their end, where no label is:
    a causal model needs no mask for that."""
    targets = labels[:, 1:]
    wanted = targets != IGNORED
    with _only_at(head, wanted):
        logits = model(input_ids=ids, **{"use_cache": False, **given}).logits
    return cross_entropy(logits[0].float(), targets[wanted], reduction="sum")


class _Beginning:
    """The keys and values of tokens that several conversations begin with, and what their gradients add up to."""

    def __init__(self, model: Any, head: Any, ids: Any) -> None:
        nowhere = torch.zeros(ids.shape, dtype=torch.bool, device=ids.device)
        with _only_at(head, nowhere):
            self._cache = model(input_ids=ids, use_cache=True).past_key_values
        self._made = [(layer.keys, layer.values) for layer in self._cache.layers]
        # In float32: gradients of several conversations are added up in them.
        self._given = [
            tuple(t.detach().float().requires_grad_(t.requires_grad) for t in pair) for pair in self._made
        ]

    def for_rows(self, rows: int) -> Any:
        """A cache of its own, as if `rows` conversations had been read so far."""
        cache = copy.copy(self._cache)
        cache.layers = [copy.copy(layer) for layer in self._cache.layers]
        for layer, made, given in zip(cache.layers, self._made, self._given):  # noqa: B905
            layer.keys, layer.values = (
                mine.to(whole.dtype).expand(rows, -1, -1, -1)
                for whole, mine in zip(made, given)  # noqa: B905
            )
        return cache

    def backward(self) -> None:
        """From the keys and values on, once for all conversations."""
        pairs = [
            (whole, mine.grad.to(whole.dtype))
            for made, given in zip(self._made, self._given)  # noqa: B905
            for whole, mine in zip(made, given)  # noqa: B905
            if mine.grad is not None
        ]
        if pairs:
            torch.autograd.backward([whole for whole, _ in pairs], [gradient for _, gradient in pairs])


def families(ids: Any, labels: Any, lengths: Sequence[int]) -> list[tuple[list[int], int]]:
    """(rows, tokens that they begin with in common and that neither are trained nor predict a trained one)."""
    contexts = [
        packed(row[: min(context_length(marks), length - 1)])
        for row, marks, length in zip(ids.tolist(), labels.tolist(), lengths)  # noqa: B905
    ]
    found = []
    for family in alike(contexts):
        shared = shared_tokens([contexts[index] for index in family]) if len(family) > 1 else 0
        found.append((family, shared if shared >= LEAST_SHARED else 0))
    return found


def chunks(rows: Sequence[int], lengths: Sequence[int], at_once: int) -> Iterator[list[int]]:
    """Rows of about one length, so many that with their padding they are at most `at_once` tokens."""
    taken: list[int] = []
    for row in sorted(rows, key=lambda index: lengths[index]):
        if taken and lengths[row] * (len(taken) + 1) > at_once:
            yield taken
            taken = []
        taken.append(row)
    if taken:
        yield taken


def add_gradients(
    model: Any,
    head: Any,
    ids: Any,
    labels: Any,
    lengths: Sequence[int],
    *,
    scale: float,
    share: bool,
    at_once: int,
    check: Callable[[Any], None] = lambda loss: None,
) -> float:
    """Add the gradients of `scale` times the summed loss to the parameters'; that loss. `check` sees each part before
    its gradients are computed."""
    total = 0.0
    found = families(ids, labels, lengths) if share else [(list(range(len(ids))), 0)]
    for family, shared in found:
        beginning = _Beginning(model, head, ids[family[:1], :shared]) if shared else None
        own = [length - shared for length in lengths]
        for rows in chunks(family, own, at_once):
            longest = shared + max(own[row] for row in rows)
            given = (
                {}
                if beginning is None
                else {"past_key_values": beginning.for_rows(len(rows)), "use_cache": True}
            )
            part = (
                plain_loss(model, head, ids[rows, shared:longest], labels[rows, shared:longest], **given)
                * scale
            )
            check(part.detach())
            if part.requires_grad:
                part.backward()
            total += float(part.detach())
        if beginning is not None:
            beginning.backward()
    return total
