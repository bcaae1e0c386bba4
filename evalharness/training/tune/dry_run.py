"""Whether a training fits, and into what: from the model's config, before anything is written or fetched."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.reading import read_json
from evalharness.models.serving.arguments import memory_bytes
from evalharness.models.serving.find import nvidia_gpu
from evalharness.training.tune.data import Made, make_rows
from evalharness.training.tune.estimate import use_of
from evalharness.training.tune.memory import Memory, Shape, Use, fitting, memory, shape_of
from evalharness.training.tune.plan import has_bf16, steps_of
from evalharness.training.tune.processes import Launch
from evalharness.training.tune.settings import Settings

_GPU_SPEED = 989e12
"""FLOP/s of an H100 in bfloat16, by its data sheet."""
_BF16_CPU = 10
"""How much faster a CPU with bfloat16 is in it (`plan.has_bf16`)."""
_REACHED = 0.4
"""Share of the speed of a matrix product that a training reaches: 190 steps of the demo model on two cores, with other
work at times, took 3 h 04 min, 0.38 of what these cores do when idle."""


@dataclass(frozen=True)
class DryRun:
    shape: Shape
    use: Use
    memory: Memory
    """Of one process."""
    limit: int
    """Bytes that one process has."""
    made: Made | None
    """The conversations; None where none were given."""
    steps: int | None
    speed: float
    """FLOP/s of all processes together, as far as it is known."""

    @property
    def flop(self) -> float | None:
        """Of all steps; None without conversations."""
        if self.made is None or self.steps is None:
            return None
        length = self.made.tokens / self.made.rows
        return self.steps * self.use.settings.batch * length * _flop_of_token(self.shape, self.use, length)

    @property
    def seconds(self) -> float | None:
        """Roughly, at `_REACHED` of `speed`; None without conversations."""
        return None if self.flop is None else self.flop / (_REACHED * self.speed)

    @property
    def fits(self) -> bool:
        return self.memory.total <= self.limit

    def require_fit(self) -> None:
        """Raises UserError with the options that make it fit."""
        if self.fits:
            return
        what = "GPU" if self.use.gpu else "process"
        options = fitting(self.shape, self.use, self.limit)
        raise UserError(
            f"the training takes about {self.memory.total / 1e9:.1f} GB a {what}, and each has "
            f"{self.limit / 1e9:.1f}: " + (f"it fits with {options}" if options else "no option makes it fit")
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "parameters": self.shape.parameters,
            "processes": self.use.processes,
            "sharded": self.use.shards,
            "micro_batch": self.use.micro_batch,
            "longest_conversation_tokens": self.use.tokens,
            "conversations": self.made and self.made.rows,
            "tokens": self.made and self.made.tokens,
            "trained_tokens": self.made and self.made.trained_tokens,
            "steps": self.steps,
            "flop": self.flop,
            "seconds": self.seconds,
            "memory_bytes": self.memory.to_json(),
            "limit_bytes": self.limit,
            "fits": self.fits,
        }


def dry_run(
    model: Path,
    files: Sequence[Path],
    settings: Settings,
    launch: Launch | None,
    *,
    gpu_memory: int | None,
    dtype: str | None,
    cpu: bool,
    server: Path | None,
    on_line: Callable[[str], None] = lambda line: None,
) -> DryRun:
    """Without `files`, for conversations of the greatest length all of whose tokens are trained. `gpu_memory`: bytes of
    each GPU, also where there is none now. Raises UserError."""
    try:
        config = read_json(model / "config.json")
    except (OSError, ValueError) as error:
        raise UserError(f"{model / 'config.json'} cannot be read: {error}") from None
    shape = shape_of(config if isinstance(config, dict) else {})
    if not (shape.layers and shape.hidden and shape.vocabulary):
        raise UserError(f"{model / 'config.json'} names no num_hidden_layers, hidden_size and vocab_size")
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
    use = use_of(settings, launch, longest=longest, most_trained=most_trained, bf16=bf16, gpu=gpu)
    limit = gpu_memory or (80_000_000_000 if gpu else memory_bytes() // use.processes)
    speed = use.processes * _GPU_SPEED if gpu else _cpu_speed() * (_BF16_CPU if bf16 else 1)
    return DryRun(
        shape, use, memory(shape, use), limit, made, steps_of(settings, made) if made else None, speed
    )


def _flop_of_token(shape: Shape, use: Use, length: float) -> float:
    """Forward and backward, with attention over half of a conversation of `length` tokens. A gradient of the weights is
    a third of what all weights take, and LoRA needs next to none. What a shared prompt saves is left aside."""
    trained = min(use.settings.top_layers or shape.layers, shape.layers) / shape.layers
    passes = 1 + (1 if use.settings.method == "lora" else 2) * trained
    again = 1 if use.settings.gradient_checkpointing else 0
    attention = 2 * length * shape.query * shape.layers
    return (passes + again) * 2 * shape.parameters + (1 + 2 * trained + again) * attention


def _cpu_speed() -> float:
    """FLOP/s of a float32 matrix product on this machine as it is now."""
    import numpy as np

    size = 1024
    left = np.random.default_rng(0).random((size, size), dtype=np.float32)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        left @ left
        times.append(time.perf_counter() - began)
    return 2.0 * size**3 / min(times)
