"""Estimate the memory and disk space of a training before it starts."""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from evalharness.base.errors import UserError
from evalharness.models.serving.arguments import memory_bytes
from evalharness.models.serving.checkpoint import CheckpointInfo, read_json
from evalharness.training.tune.memory import Memory, MemoryUse, memory, read_shape
from evalharness.training.tune.settings import Settings


@dataclass(frozen=True)
class Estimate:
    parameters: int
    trained_parameters: int
    memory: Memory
    checkpoint_bytes: int
    disk_bytes: int
    """Bytes of all checkpoints and the finished model."""

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "memory": self.memory.to_json()}


def make_use(settings: Settings, *, longest: int, most_trained: int, bf16: bool, gpu: bool) -> MemoryUse:
    return MemoryUse(settings, longest, most_trained, bf16, gpu, settings.micro_batch or 1)


def estimate(base: CheckpointInfo, use: MemoryUse, *, checkpoints: int) -> Estimate:
    shapes = base.shapes
    parameters = sum(math.prod(shape) for shape in shapes.values()) or base.weight_bytes // 2
    # LoRA adds two matrices to every linear layer except the embeddings and the output layer.
    adapter = use.settings.lora_rank * sum(
        sum(shape)
        for name, shape in shapes.items()
        if len(shape) == 2 and "embed" not in name and "lm_head" not in name
    )
    trained = adapter if use.settings.method == "lora" else parameters
    finished = (2 if use.bf16 else 4) * trained
    checkpoint = 12 * trained  # each weight and Adam's two averages, in float32
    needed = memory(read_shape(read_json(base.path / "config.json")), use, parameters, trained)
    return Estimate(parameters, trained, needed, checkpoint, checkpoint * checkpoints + finished)


def require_room(estimated: Estimate, folder: Path, *, gpu: bool) -> str | None:
    """Return a warning if too little memory is free now. Raises UserError if disk or memory are too small in any
    case."""
    free = shutil.disk_usage(folder).free
    if estimated.disk_bytes > free:
        raise UserError(
            f"the checkpoints need about {estimated.disk_bytes / 1e9:.1f} GB in {folder}, and {free / 1e9:.1f} GB are "
            "free: keep fewer checkpoints (--keep N), save less often (--save-every N), or choose another -o DIR"
        )
    if gpu:
        return None
    total, available = memory_bytes(), psutil.virtual_memory().available
    whole = estimated.memory.total
    needed = f"the training needs about {whole / 1e9:.1f} GB of memory"
    smaller = "--max-length, --too-long drop, --gradient-checkpointing or LoRA need less"
    if whole > total:
        raise UserError(f"{needed}, and this machine has {total / 1e9:.1f}: {smaller}")
    if whole > available:
        return f"{needed}, and {available / 1e9:.1f} GB are free now: {smaller}"
    return None
