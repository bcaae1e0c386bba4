"""Choose the order in which conversations are trained. This file runs in the training environment, so it imports
nothing of this package."""

from __future__ import annotations

import random
from collections.abc import Sequence


def draw_order(lengths: Sequence[int], batch: int, seed: int, epoch: int) -> list[int]:
    """Return every index once, in random batches. A batch is one optimizer step. Within a batch, sort conversations by
    length: this reduces the padding of micro-batches and does not change the step's gradient."""
    drawn = list(range(len(lengths)))
    random.Random(f"{seed} {epoch}").shuffle(drawn)
    return [
        index
        for start in range(0, len(drawn), batch)
        for index in sorted(drawn[start : start + batch], key=lambda i: lengths[i])
    ]
