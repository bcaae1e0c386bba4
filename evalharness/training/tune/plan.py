"""Check the input of a training, convert the data to tokens, and estimate memory and disk space."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.machine import cpu_flags
from evalharness.base.reading import read_known
from evalharness.models.serving.checkpoint import CheckpointInfo, check_checkpoint
from evalharness.models.serving.find import nvidia_gpu
from evalharness.runs.find_runs import TRAINING
from evalharness.training.datasets.chat_templates import find_template
from evalharness.training.tune.data import DataCounts, data_sha256, make_rows
from evalharness.training.tune.estimate import Estimate, estimate, make_use, require_room
from evalharness.training.tune.install import TuneInstall
from evalharness.training.tune.settings import Settings
from evalharness.training.tune.start import StartingModel

MANIFEST, ROWS = "manifest.json", "tokens.parquet"
_FEW_CHECKPOINTS = 10


@dataclass
class TrainingPlan:
    start: StartingModel
    base: CheckpointInfo
    settings: Settings
    install: TuneInstall
    folder: Path
    identity: dict[str, Any]
    """Values that must be equal to continue the training in a folder."""
    data: list[dict[str, str]]
    """Name and SHA-256 of each file."""
    made: DataCounts
    estimate: Estimate
    dtype: str
    """Number format of the computation: bfloat16 or float32."""
    steps: int
    save_every: int
    keep: int
    cpu: bool
    gpu: bool
    template: Path | None = None
    """A chat template that replaces the base model's template."""
    warning: str | None = None

    @property
    def rows(self) -> Path:
        return self.folder / ROWS


def has_bf16(*, gpu: bool) -> bool:
    """Return whether the machine has bfloat16 instructions; on a CPU they are 10 to 14 times as fast as float32."""
    return gpu or not cpu_flags().isdisjoint({"avx512_bf16", "amx_bf16", "bf16"})


def plan(
    start: StartingModel,
    files: Sequence[Path],
    folder: Path,
    settings: Settings,
    install: TuneInstall,
    *,
    save_every: int | None = None,
    keep: int = 0,
    dtype: str | None = None,
    cpu: bool = False,
    on_line: Callable[[str], None] = lambda line: None,
) -> TrainingPlan | None:
    """Check the input, convert the data to tokens, and estimate. Return None if this training is already complete.
    Raises UserError if the training cannot start or would fail."""
    base = check_checkpoint(start.base)
    if base.max_position_embeddings is not None and settings.max_length > base.max_position_embeddings:
        raise UserError(
            f"--max-length {settings.max_length} is more than the maximum of {start.base} "
            f"({base.max_position_embeddings})"
        )
    gpu = nvidia_gpu() and not cpu
    chosen = dtype or ("bfloat16" if has_bf16(gpu=gpu) else "float32")
    data = [{"file": path.name, "sha256": data_sha256(path)} for path in files]
    identity = {
        "base_sha256": base.identity,
        "data_sha256": [file["sha256"] for file in data],
        "settings": settings.to_json(),
        "dtype": chosen,
    }
    if start.adapter is not None:
        identity["adapter_sha256"] = start.adapter.identity
    template = None if settings.chat_template is None else find_template(settings.chat_template)
    if template is not None:
        identity["chat_template_sha256"] = data_sha256(template)
    if _is_finished(folder, identity):
        return None
    made = make_rows(files, base.path, folder / ROWS, settings, python=install.server, on_line=on_line)
    steps = count_steps(settings, made)
    if save_every is None:
        # Save ten adapters: they are small, and a kill then loses little. Save whole models, which are large, by epoch.
        save_every = math.ceil(steps / _FEW_CHECKPOINTS) if settings.method == "lora" else 0
    number = math.ceil(steps / save_every) if save_every else math.ceil(settings.epochs)
    number = min(number, keep) if keep else number
    use = make_use(
        settings,
        longest=made.longest,
        most_trained=made.most_trained,
        bf16=chosen == "bfloat16",
        gpu=gpu,
    )
    estimated = estimate(base, use, checkpoints=number)
    warning = require_room(estimated, folder, gpu=gpu)
    return TrainingPlan(
        start, base, settings, install, folder, identity, data, made, estimated, chosen, steps, save_every, keep, cpu,
        gpu, template, warning,
    )  # fmt: skip


def count_steps(settings: Settings, made: DataCounts) -> int:
    if settings.max_steps:
        return settings.max_steps
    return math.ceil(math.ceil(made.rows / settings.batch) * settings.epochs)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    manifest = read_known(folder / MANIFEST)
    return manifest if manifest.get("kind") == TRAINING else None


def _is_finished(folder: Path, identity: dict[str, Any]) -> bool:
    """Return whether this training is complete in the folder. Raises UserError if the folder has another training."""
    manifest = read_manifest(folder)
    if manifest is None:
        if any((folder / name).exists() for name in ("config.json", "adapter_config.json")):
            raise UserError(f"{folder} already has a model; choose another folder with -o DIR")
        return False
    before = manifest.get("identity")
    if not isinstance(before, dict) or not isinstance(before.get("settings"), dict):
        raise UserError(
            f"{folder / MANIFEST} is damaged: it lacks the training's settings; choose another folder with -o DIR"
        )
    other = [
        key
        for key in ("base_sha256", "data_sha256", "dtype", "chat_template_sha256", "adapter_sha256")
        if before.get(key) != identity.get(key)
    ]
    other += [
        f"{key} {before['settings'].get(key)} there, {value} now"
        for key, value in identity["settings"].items()
        if before["settings"].get(key, getattr(Settings, key)) != value
    ]
    if other:
        raise UserError(
            f"{folder} has another training ({'; '.join(other)}); choose another folder with -o DIR"
        )
    return manifest.get("status") == "done"
