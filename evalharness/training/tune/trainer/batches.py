"""In which order conversations are trained. Pure; also run by the training environment's Python, so that it needs
nothing of this package."""

from __future__ import annotations

import random
from collections.abc import Sequence


def order(lengths: Sequence[int], batch: int, seed: int, epoch: int) -> list[int]:
    """Every index once, in batches drawn at random. Within a batch, which is one step, the short ones come first: that
    decides what a micro-batch pads, not what a step learns from."""
    drawn = list(range(len(lengths)))
    random.Random(f"{seed} {epoch}").shuffle(drawn)
    return [
        index
        for start in range(0, len(drawn), batch)
        for index in sorted(drawn[start : start + batch], key=lambda i: lengths[i])
    ]
