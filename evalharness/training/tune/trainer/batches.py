"""In which order conversations are trained, and which of them begin alike. Pure; also run by the training environment's
Python, so that it needs nothing of this package.

Each epoch draws its batches at random. All conversations of a family begin with the same system text, rules and worked
example: most of their tokens. Those of one batch stand side by side, so that a micro-batch computes their beginning
once.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence

IGNORED = -100
LEAST_SHARED = 32
"""Tokens: below, sharing costs more than it saves."""


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
    families: Sequence[Sequence[int]], lengths: Sequence[int], batch: int, seed: int, epoch: int
) -> list[int]:
    """Every index once, in batches drawn at random. Within a batch, which is one step, those of a family stand side by
    side, the short ones first: that decides what a micro-batch computes together, not what a step learns from."""
    family_of = {index: number for number, family in enumerate(families) for index in family}
    drawn = list(range(len(lengths)))
    random.Random(f"{seed} {epoch}").shuffle(drawn)
    return [
        index
        for start in range(0, len(drawn), batch)
        for index in sorted(drawn[start : start + batch], key=lambda i: (family_of[i], lengths[i]))
    ]
