"""How losses and gradients are computed, by the settings and the processes there are. Pure; also run by the training
environment's Python, so that it needs nothing of this package."""

from __future__ import annotations

from typing import Any

AT_ONCE, AT_ONCE_GPU = 1024, 4096
"""Tokens, padding included, whose intermediate results are in memory at once (or one conversation's, if it is longer),
beside those of a shared beginning. Of SmolLM2-135M with LoRA on all layers a token takes about 2 MB."""
_MICRO_BATCH = 8
"""Conversations of a micro-batch at most, where nothing else is said."""


class RefusedError(Exception):
    """The settings do not fit the processes; the message says why."""


def choose(job: dict[str, Any], processes: int, *, cuda: bool) -> dict[str, Any]:
    """`share_prefix`, `loss`, `at_once` and `micro_batch` of a job. Raises RefusedError.

    What goes its own way back (`by conversation`) does so in one process that nobody launched: FSDP and DeepSpeed want
    to see every step of a way back. Elsewhere on a GPU it is TRL's own loss, which there, but not on a CPU, computes
    the logits of trained positions alone.
    """
    alone = processes == 1 and not job["launched"]
    possible = alone and not job["packing"] and not job["gradient_checkpointing"]
    if job["share_prefix"] and not possible:
        raise RefusedError("--share-prefix is for one process, without --accelerate-config")
    share = possible if job["share_prefix"] is None else job["share_prefix"]
    loss = "by conversation" if share or (alone and not cuda) else "trl" if cuda else "selected"
    return {
        "share_prefix": share,
        "loss": loss,
        "at_once": AT_ONCE_GPU if cuda else AT_ONCE,
        "micro_batch": _micro_batch(
            job, processes, _MICRO_BATCH if loss == "by conversation" else 4 if cuda else 1
        ),
    }


def _micro_batch(job: dict[str, Any], processes: int, most: int) -> int:
    """Conversations at a time, of a process's part of the batch. In one process on a CPU memory does not grow with
    them (`losses.py`), and the more of them begin alike the less is computed."""
    part, rest = divmod(job["batch"], processes)
    if rest or not part or (job["micro_batch"] and part % job["micro_batch"]):
        own = f" in micro-batches of {job['micro_batch']}" if job["micro_batch"] else ""
        raise RefusedError(f"a batch of {job['batch']} cannot be divided over {processes} processes{own}")
    return int(job["micro_batch"]) or divisor(part, most)


def divisor(number: int, most: int) -> int:
    """The largest up to `most`."""
    return max(size for size in range(1, most + 1) if number % size == 0)
