"""What a training will take in memory and on the disk: said before it starts. Pure, but for what is free."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from evalharness.base.errors import UserError
from evalharness.models.serving.arguments import memory_bytes
from evalharness.models.serving.checkpoint import CheckpointInfo, read_json
from evalharness.models.serving.lora import tensor_shapes
from evalharness.training.tune.settings import Settings

AT_ONCE = 1024
"""As in `trainer/choices.py`."""


@dataclass(frozen=True)
class Estimate:
    parameters: int
    trained_parameters: int
    memory_bytes: int
    """While it trains, on a CPU."""
    checkpoint_bytes: int
    """Each."""
    disk_bytes: int
    """All checkpoints and the finished model."""

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


def estimate(
    base: CheckpointInfo, settings: Settings, *, longest: int, most_trained: int, bf16: bool, checkpoints: int
) -> Estimate:
    shapes = [
        (name, shape)
        for file in base.weight_files
        if file.endswith(".safetensors")
        for name, shape in tensor_shapes(base.path / file).items()
    ]
    sizes = {name: _product(shape) for name, shape in shapes}
    parameters = sum(sizes.values()) or base.weight_bytes // 2
    # Of the rank's two matrices, for every linear layer but the embeddings and the output.
    adapter = settings.lora_rank * sum(
        sum(shape)
        for name, shape in shapes
        if len(shape) == 2 and "embed" not in name and "lm_head" not in name
    )
    lora = settings.method == "lora"
    trained = adapter if lora else parameters
    # Weight, gradient and Adam's two averages of what is trained, in float32.
    weights = parameters * (2 if bf16 else 4) + 16 * trained if lora else 16 * trained
    config = read_json(base.path / "config.json")
    text = config.get("text_config", config)
    layers, hidden = int(text.get("num_hidden_layers", 0)), int(text.get("hidden_size", 0))
    inner = int(text.get("intermediate_size") or 4 * hidden)
    # Intermediate results that the way back needs, of each token: measured with SmolLM2-135M (2 MB, bf16 and LoRA).
    per_token = layers * (40 * hidden + 26 * inner) * (1 if bf16 else 2)
    if settings.gradient_checkpointing:
        per_token //= 8
    at_once = longest + AT_ONCE
    logits = min(most_trained, at_once) * int(text.get("vocab_size", 0)) * 12
    one_gib = 2**30  # the libraries themselves
    checkpoint = 12 * trained
    finished = (2 if bf16 else 4) * trained
    return Estimate(
        parameters,
        trained,
        weights + at_once * per_token + logits + one_gib,
        checkpoint,
        checkpoint * checkpoints + finished,
    )


def _product(shape: tuple[int, ...]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product


def require_room(found: Estimate, folder: Path, *, gpu: bool) -> str | None:
    """A warning where memory is short at the moment. Raises UserError where it or the disk cannot suffice at all."""
    free = shutil.disk_usage(folder).free
    if found.disk_bytes > free:
        raise UserError(
            f"the checkpoints will take about {found.disk_bytes / 1e9:.1f} GB in {folder}, {free / 1e9:.1f} GB are "
            "free: keep fewer of them (--keep N), save less often (--save-every N), or write elsewhere with -o DIR"
        )
    if gpu:
        return None
    total, available = memory_bytes(), psutil.virtual_memory().available
    needed = f"the training will take about {found.memory_bytes / 1e9:.1f} GB of memory"
    smaller = "--max-length, --too-long drop, --gradient-checkpointing or LoRA take less"
    if found.memory_bytes > total:
        raise UserError(f"{needed}, this machine has {total / 1e9:.1f}: {smaller}")
    if found.memory_bytes > available:
        return f"{needed}, and {available / 1e9:.1f} GB are free now: {smaller}"
    return None


def stored_dtype(base: CheckpointInfo) -> str:
    """What the base's weights are kept in."""
    config = read_json(base.path / "config.json")
    text = config.get("text_config")
    named = config.get("dtype") or config.get("torch_dtype")
    if named is None and isinstance(text, dict):
        named = text.get("dtype") or text.get("torch_dtype")
    return named if named in ("float32", "bfloat16", "float16") else "float32"
