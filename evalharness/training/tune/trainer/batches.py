"""The order in which conversations are trained. The training environment's Python runs this file, which therefore
imports nothing of this package."""

from __future__ import annotations

import random
from collections.abc import Sequence


def draw_order(lengths: Sequence[int], batch: int, seed: int, epoch: int) -> list[int]:
    """Return every index once, in batches drawn at random. Within a batch, which is one step, short conversations come
    first: this changes the padding of micro-batches, but not what a step learns."""
    drawn = list(range(len(lengths)))
    random.Random(f"{seed} {epoch}").shuffle(drawn)
    return [
        index
        for start in range(0, len(drawn), batch)
        for index in sorted(drawn[start : start + batch], key=lambda i: lengths[i])
    ]
