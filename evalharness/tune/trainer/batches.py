"""In which order conversations are trained, and which of them begin alike. Pure; also run by the training environment's
Python, so that it needs nothing of this package.

All conversations of a family begin with the same system text, rules and worked example: most of their tokens. A
micro-batch of conversations that begin alike computes that beginning once.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator, Sequence

IGNORED = -100
LEAST_SHARED = 32
"""Tokens: below, sharing costs more than it saves."""
_WINDOW = 8
"""Micro-batches among which conversations are sorted by length, so that little is padded and order stays random."""


def context_length(labels: Sequence[int]) -> int:
    """Tokens from the start that neither are trained nor predict a trained token (0: none)."""
    first = next((place for place, label in enumerate(labels) if label != IGNORED), len(labels))
    return max(first - 1, 0)


def packed(ids: Sequence[int]) -> bytes:
    """Token ids as bytes of which slices compare at once."""
    return array("i", ids).tobytes()


def common_tokens(first: bytes, second: bytes) -> int:
    """Tokens that two `packed` sequences have in common from the start."""
    low, high = 0, min(len(first), len(second)) // 4
    while low < high:
        middle = (low + high + 1) // 2
        if first[: 4 * middle] == second[: 4 * middle]:
            low = middle
        else:
            high = middle - 1
    return low


def alike(contexts: Sequence[bytes]) -> list[list[int]]:
    """Indices of contexts that begin alike, a list a family: neighbours in order that share at least half of the
    shorter one."""
    families: list[list[int]] = []
    before = b""
    for index in sorted(range(len(contexts)), key=lambda i: (contexts[i], i)):
        context = contexts[index]
        least = max(LEAST_SHARED, min(len(before), len(context)) // 8)  # 4 bytes a token
        if not families or common_tokens(before, context) < least:
            families.append([])
        families[-1].append(index)
        before = context
    return families


def shared_tokens(contexts: Sequence[bytes]) -> int:
    """Tokens that all contexts begin with."""
    return common_tokens(min(contexts), max(contexts))


def order(
    families: Sequence[Sequence[int]], lengths: Sequence[int], micro_batch: int, seed: int, epoch: int
) -> list[int]:
    """Every index once. Each `micro_batch` of them in a row are of one family and of about one length, as far as the
    numbers allow; what is left over of the families comes together, an incomplete micro-batch last."""
    source = random.Random(f"{seed} {epoch}")
    whole: list[list[int]] = []
    rest: list[int] = []
    for family in families:
        drawn = list(family)
        source.shuffle(drawn)
        full = len(drawn) // micro_batch * micro_batch
        rest += drawn[full:]
        for start in range(0, full, _WINDOW * micro_batch):
            window = drawn[start : min(start + _WINDOW * micro_batch, full)]
            window.sort(key=lambda index: lengths[index])
            whole += _cut(window, micro_batch)
    leftover = list(_cut(rest, micro_batch))
    last = leftover.pop() if leftover and len(leftover[-1]) < micro_batch else []
    whole += leftover
    source.shuffle(whole)
    return [index for batch in whole for index in batch] + last


def _cut(indices: Sequence[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(indices), size):
        yield list(indices[start : start + size])
