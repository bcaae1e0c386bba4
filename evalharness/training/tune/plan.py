"""All that is known of a training before it starts: checked, counted, estimated."""

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
from evalharness.runs.folders import TRAINING
from evalharness.training.datasets.chat_templates import find_template
from evalharness.training.tune.data import Made, data_sha256, make_rows
from evalharness.training.tune.estimate import Estimate, estimate, require_room, use_of
from evalharness.training.tune.install import TuneInstall
from evalharness.training.tune.settings import Settings
from evalharness.training.tune.start import Start

MANIFEST, ROWS = "manifest.json", "tokens.parquet"
_FEW_CHECKPOINTS = 10


@dataclass
class Plan:
    """All that is known before the training starts."""

    start: Start
    base: CheckpointInfo
    settings: Settings
    install: TuneInstall
    folder: Path
    identity: dict[str, Any]
    """Values that must be unchanged for a training to be continued."""
    data: list[dict[str, str]]
    """Name and SHA-256 of each file."""
    made: Made
    estimate: Estimate
    dtype: str
    """Of the computation: bfloat16 or float32."""
    steps: int
    save_every: int
    keep: int
    cpu: bool
    gpu: bool
    template: Path | None = None
    """The chat template that is used instead of the base's own."""
    warning: str | None = None

    @property
    def rows(self) -> Path:
        return self.folder / ROWS


def has_bf16(*, gpu: bool) -> bool:
    """Whether the machine computes in bfloat16 (measured: 10 to 14 times as fast as float32 on such a CPU)."""
    return gpu or not cpu_flags().isdisjoint({"avx512_bf16", "amx_bf16", "bf16"})


def plan(
    start: Start,
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
) -> Plan | None:
    """Check everything, make the tokens, estimate; None where this training is finished already.

    Raises UserError before a long wait.
    """
    base = check_checkpoint(start.base)
    if base.max_position_embeddings is not None and settings.max_length > base.max_position_embeddings:
        raise UserError(
            f"--max-length {settings.max_length} is more than {start.base} takes ({base.max_position_embeddings})"
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
    if _finished(folder, identity):
        return None
    made = make_rows(files, base.path, folder / ROWS, settings, python=install.server, on_line=on_line)
    steps = steps_of(settings, made)
    if save_every is None:
        # An adapter is small: some to choose from, and little is lost by a kill. Whole models: one an epoch.
        save_every = math.ceil(steps / _FEW_CHECKPOINTS) if settings.method == "lora" else 0
    number = math.ceil(steps / save_every) if save_every else math.ceil(settings.epochs)
    number = min(number, keep) if keep else number
    use = use_of(
        settings,
        longest=made.longest,
        most_trained=made.most_trained,
        bf16=chosen == "bfloat16",
        gpu=gpu,
    )
    found = estimate(base, use, checkpoints=number)
    warning = require_room(found, folder, gpu=gpu)
    return Plan(
        start, base, settings, install, folder, identity, data, made, found, chosen, steps, save_every, keep, cpu,
        gpu, template, warning,
    )  # fmt: skip


def steps_of(settings: Settings, made: Made) -> int:
    if settings.max_steps:
        return settings.max_steps
    return math.ceil(math.ceil(made.rows / settings.batch) * settings.epochs)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    manifest = read_known(folder / MANIFEST)
    return manifest if manifest.get("kind") == TRAINING else None


def _finished(folder: Path, identity: dict[str, Any]) -> bool:
    """Whether the folder's training is done. Raises UserError where it is another training."""
    manifest = read_manifest(folder)
    if manifest is None:
        if any((folder / name).exists() for name in ("config.json", "adapter_config.json")):
            raise UserError(f"{folder} holds a model already; choose another folder with -o DIR")
        return False
    before = manifest.get("identity")
    if not isinstance(before, dict) or not isinstance(before.get("settings"), dict):
        raise UserError(
            f"{folder / MANIFEST} is damaged: it does not say what was trained; choose another folder with -o DIR"
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
            f"{folder} holds another training ({'; '.join(other)}); choose another folder with -o DIR"
        )
    return manifest.get("status") == "done"
