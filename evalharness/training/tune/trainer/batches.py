"""In which order conversations are trained, how many are computed at a time, and of which layers. Pure; also run by the
training environment's Python, so that it needs nothing of this package."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

_LAYER = re.compile(r"\.(?:layers|h|blocks?)\.(\d+)\.")


class RefusedError(Exception):
    """The settings do not fit the processes or the model; the message says why, and what to choose."""


def micro_batch(job: dict[str, Any], processes: int) -> int:
    """Conversations at a time, of a process's part of the batch: one where nothing else is said. Several are padded,
    and an H200 took 59 GB for four of at most 6,136 tokens, where 20 were computed. Raises RefusedError."""
    part, rest = divmod(job["batch"], processes)
    if rest or not part or (job["micro_batch"] and part % job["micro_batch"]):
        own = f" in micro-batches of {job['micro_batch']}" if job["micro_batch"] else ""
        raise RefusedError(
            f"a batch of {job['batch']} cannot be divided over {processes} processes{own}; "
            "choose another --batch, --micro-batch or --processes"
        )
    return int(job["micro_batch"]) or 1


def trained_parameters(names: Sequence[str], layers: int, top: int) -> set[str]:
    """The parameters of a model's upper `top` layers, by the number in their names (`layers.29.`, `h.11.`). Raises
    RefusedError where no name has the last layer's number."""
    numbered = {name: int(match[1]) for name in names if (match := _LAYER.search(name))}
    if layers - 1 not in numbered.values():
        raise RefusedError("the layers of this architecture are not numbered; leave --top-layers out")
    return {name for name, layer in numbered.items() if layer >= layers - top}


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
