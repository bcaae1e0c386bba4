"""Causal attention for training on CPUs, by blocks of queries: matrix products in the model's own precision, and
nothing kept for the way back but queries, keys and values.

PyTorch's own fused attention took 56 % of a step there (SmolLM2-135M, bfloat16, conversations of 1,500 tokens).
Run by the training environment's Python; needs nothing of this package.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]

NAME = "causal_blocks"
_BLOCK = 256
"""Queries whose attention weights are in memory at once, of each head."""


def _blocks(query: Any, key: Any) -> Iterator[tuple[slice, slice, Any, Any]]:
    """(queries, the keys that they see, the queries as rows of their keys' head, attention weights in float32)."""
    batch, heads, length, size = query.shape
    owners, before = key.shape[1], key.shape[2] - length
    shared = heads // owners
    for start in range(0, length, _BLOCK):
        stop = min(start + _BLOCK, length)
        rows = query.view(batch * owners, shared, length, size)[:, :, start:stop].flatten(1, 2)
        seen = key.flatten(0, 1)[:, : before + stop]
        weights = torch.bmm(rows, seen.transpose(1, 2)).float()
        last = weights.view(batch * owners, shared, stop - start, before + stop)[..., before + start :]
        future = torch.ones(stop - start, stop - start, dtype=torch.bool, device=query.device).triu_(1)
        last.masked_fill_(future, float("-inf"))
        yield slice(start, stop), slice(0, before + stop), rows, torch.softmax(weights, -1)


class _Attention(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    @staticmethod
    def forward(ctx: Any, query: Any, key: Any, value: Any) -> Any:
        query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
        ctx.save_for_backward(query, key, value)
        batch, heads, _, size = query.shape
        shape = (batch, key.shape[1], heads // key.shape[1], -1, size)
        parts = [
            torch.bmm(weights.to(value.dtype), value.flatten(0, 1)[:, seen]).view(shape)
            for _, seen, _, weights in _blocks(query, key)
        ]
        return torch.cat(parts, 3).flatten(1, 2)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        query, key, value = ctx.saved_tensors
        batch, heads, length, size = query.shape
        owners = key.shape[1]
        given = gradient.to(value.dtype).reshape(batch * owners, heads // owners, length, size)
        of_query = torch.empty_like(query).view(given.shape)
        keys, values = key.flatten(0, 1), value.flatten(0, 1)
        of_keys, of_values = (torch.zeros_like(whole, dtype=torch.float32) for whole in (keys, values))
        for queries, seen, rows, weights in _blocks(query, key):
            out = given[:, :, queries].flatten(1, 2)
            of_values[:, seen] += torch.bmm(weights.to(out.dtype).transpose(1, 2), out)
            slopes = torch.bmm(out, values[:, seen].transpose(1, 2)).float()
            slopes.sub_((slopes * weights).sum(-1, keepdim=True)).mul_(weights)
            scores = slopes.to(rows.dtype)
            of_query[:, :, queries] = torch.bmm(scores, keys[:, seen]).view(
                batch * owners, heads // owners, -1, size
            )
            of_keys[:, seen] += torch.bmm(scores.transpose(1, 2), rows)
        return (
            of_query.view(query.shape),
            of_keys.to(key.dtype).view(key.shape),
            of_values.to(value.dtype).view(value.shape),
        )


def attend(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float | None = None, **_: Any
) -> tuple[Any, None]:
    """What transformers calls. The queries are the last of the keys; there is no padding before them."""
    if attention_mask is not None:
        raise RuntimeError("attention by blocks knows no mask but the causal one")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return _Attention.apply(query * scale, key, value).transpose(1, 2), None


def register() -> str:
    """Make it known to transformers; its name there."""
    from transformers import AttentionInterface  # type: ignore[import-not-found, unused-ignore]

    AttentionInterface.register(NAME, attend)
    return NAME
