"""Estimate from the model's config whether a training fits into memory, before anything is written or downloaded."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.reading import read_json
from evalharness.models.serving.arguments import memory_bytes
from evalharness.models.serving.find import nvidia_gpu
from evalharness.training.tune.data import DataCounts, make_rows
from evalharness.training.tune.estimate import make_use
from evalharness.training.tune.memory import Memory, MemoryUse, Shape, find_options, memory, read_shape
from evalharness.training.tune.plan import count_steps, has_bf16
from evalharness.training.tune.settings import Settings


@dataclass(frozen=True)
class DryRun:
    shape: Shape
    use: MemoryUse
    memory: Memory
    limit: int
    """Bytes of available memory."""
    made: DataCounts | None
    """Counts of the training data; None if no data was given."""
    steps: int | None

    @property
    def fits(self) -> bool:
        return self.memory.total <= self.limit

    def require_fit(self) -> None:
        """Raise UserError if the training does not fit into memory. The message has options with which it fits."""
        if self.fits:
            return
        options = find_options(self.shape, self.use, self.limit)
        raise UserError(
            f"the training needs about {self.memory.total / 1e9:.1f} GB, and there are "
            f"{self.limit / 1e9:.1f}: " + (f"it fits with {options}" if options else "no option makes it fit")
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "parameters": self.shape.parameters,
            "micro_batch": self.use.micro_batch,
            "longest_conversation_tokens": self.use.tokens,
            "conversations": self.made and self.made.rows,
            "tokens": self.made and self.made.tokens,
            "trained_tokens": self.made and self.made.trained_tokens,
            "steps": self.steps,
            "memory_bytes": self.memory.to_json(),
            "limit_bytes": self.limit,
            "fits": self.fits,
        }


def dry_run(
    model: Path,
    files: Sequence[Path],
    settings: Settings,
    *,
    gpu_memory: int | None,
    dtype: str | None,
    cpu: bool,
    server: Path | None,
    on_line: Callable[[str], None] = lambda line: None,
) -> DryRun:
    """Estimate a training. Without `files`, assume conversations of --max-length tokens, all of them trained.
    `gpu_memory` is the memory in bytes of a GPU, which need not be in this machine. Raises UserError."""
    try:
        config = read_json(model / "config.json")
    except (OSError, ValueError) as error:
        raise UserError(f"{model / 'config.json'} cannot be read: {error}") from None
    shape = read_shape(config if isinstance(config, dict) else {})
    if not (shape.layers and shape.hidden and shape.vocabulary):
        raise UserError(f"{model / 'config.json'} lacks num_hidden_layers, hidden_size or vocab_size")
    gpu = gpu_memory is not None or (nvidia_gpu() and not cpu)
    bf16 = (dtype or ("bfloat16" if has_bf16(gpu=gpu) else "float32")) == "bfloat16"
    longest = most_trained = settings.max_length
    made = None
    if files:
        assert server is not None
        with tempfile.TemporaryDirectory(prefix="evalharness-tune-") as folder:
            target = Path(folder) / "tokens.parquet"
            made = make_rows(files, model, target, settings, python=server, on_line=on_line)
        longest, most_trained = made.longest, made.most_trained
    use = make_use(settings, longest=longest, most_trained=most_trained, bf16=bf16, gpu=gpu)
    limit = gpu_memory or (80_000_000_000 if gpu else memory_bytes())
    return DryRun(shape, use, memory(shape, use), limit, made, count_steps(settings, made) if made else None)
