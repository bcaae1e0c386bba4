"""Check from the files' headers that a LoRA adapter's folder is complete and fits its base model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from evalharness.base.paths import real_path
from evalharness.base.reading import read_bytes, sha256_of
from evalharness.models.serving.checkpoint import (
    TOKENIZER_FILES,
    CheckpointError,
    CheckpointInfo,
    Shape,
    check_weight_file,
    find_cached_snapshot,
    is_local,
    read_json,
    tensor_shapes,
)

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PREFIX = "base_model.model."
_VLLM_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Values that `--max-lora-rank` accepts (vLLM 0.32)."""


@dataclass(frozen=True)
class Adapter:
    path: Path
    base: str | None
    """The base model that the training named: a folder, or a hub id."""
    revision: str
    rank: int
    """The largest rank of the adapter's matrices."""
    settings: Mapping[str, Any]
    """`adapter_config.json`."""
    shapes: Mapping[str, Shape]

    @property
    def name(self) -> str:
        return real_path(self.path).name

    @property
    def own_files(self) -> tuple[str, ...]:
        """Names of the tokenizer files and chat templates in the adapter's folder."""
        return tuple(name for name in TOKENIZER_FILES if (self.path / name).is_file())

    @cached_property
    def identity(self) -> str:
        """SHA-256 of the weights and of the settings that change their effect, independent of the folders' paths."""
        unimportant = ("base_model_name_or_path", "revision", "inference_mode", "peft_version")
        counted = {key: value for key, value in self.settings.items() if key not in unimportant}
        digest = hashlib.sha256(json.dumps(counted, sort_keys=True).encode())
        for name in sorted((WEIGHTS, *self.own_files)):
            digest.update(f"{name}\0{sha256_of(self.path / name)}\n".encode())
        return digest.hexdigest()

    @property
    def max_rank(self) -> int:
        """Value for vLLM's `--max-lora-rank`."""
        return next((rank for rank in _VLLM_RANKS if rank >= self.rank), self.rank)


def is_adapter(folder: str | Path) -> bool:
    """Return whether a local folder contains an adapter and no whole model."""
    path = Path(folder).expanduser()
    return is_local(folder) and (path / CONFIG).is_file() and not (path / "config.json").exists()


def check_adapter(folder: str | Path) -> Adapter:
    """Read an adapter's folder. Raises CheckpointError if it does not contain a complete LoRA adapter."""
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise CheckpointError(f"--lora {folder}: no such folder")
    if not (path / CONFIG).is_file():
        raise CheckpointError(f"--lora {folder} has no {CONFIG}: not a LoRA adapter")
    settings = read_json(path / CONFIG)
    if settings.get("peft_type") != "LORA":
        raise CheckpointError(
            f"{path} is an adapter of type {settings.get('peft_type')!r}; only LORA is supported: merge it with the "
            "library that trained it and give the merged folder"
        )
    if not (path / WEIGHTS).is_file():
        older = " (adapter_model.bin can hold code: save it as safetensors)"
        why = older if (path / "adapter_model.bin").exists() else ""
        raise CheckpointError(f"{path} has no {WEIGHTS}{why}")
    check_weight_file(path / WEIGHTS)
    shapes = tensor_shapes(path / WEIGHTS)
    base = settings.get("base_model_name_or_path")
    return Adapter(
        path=path,
        base=base if isinstance(base, str) and base else None,
        revision=str(settings.get("revision") or "main"),
        rank=_rank(path, settings, shapes),
        settings=settings,
        shapes=shapes,
    )


def _rank(path: Path, settings: Mapping[str, Any], shapes: Mapping[str, Shape]) -> int:
    patterns = settings.get("rank_pattern") or {}
    stated = [settings.get("r"), *(patterns.values() if isinstance(patterns, dict) else ())]
    ranks = {shape[0] for name, shape in shapes.items() if _is_first(name) and shape}
    if not ranks:
        raise CheckpointError(f"{path / WEIGHTS} has no LoRA matrices")
    if other := [rank for rank in ranks if rank not in stated]:
        says = ", ".join(sorted({str(rank) for rank in stated}))
        raise CheckpointError(
            f"{path}: {CONFIG} says rank {says}, but {WEIGHTS} has matrices of rank {max(other)}; "
            "the files are from different adapters"
        )
    return max(ranks)


def _is_first(name: str) -> bool:
    return name.endswith((".lora_A.weight", ".lora_embedding_A"))


def find_base(adapter: Adapter) -> Path:
    """Return the base model's folder if the path or hub id in adapter_config.json exists on this machine."""
    advice = f"give it yourself: --model BASE --lora {adapter.path}"
    if adapter.base is None:
        raise CheckpointError(f"{adapter.path / CONFIG} does not name its base model; {advice}")
    for folder in (Path(adapter.base).expanduser(), adapter.path / adapter.base):
        if (folder / "config.json").is_file():
            return folder
    snapshot = None if is_local(adapter.base) else find_cached_snapshot(adapter.base, adapter.revision)
    if snapshot is None or not (snapshot / "config.json").is_file():
        where = "no such folder here" if is_local(adapter.base) else "neither a folder nor in the hub cache"
        raise CheckpointError(f"{adapter.path} is an adapter of {adapter.base}, which is {where}; {advice}")
    return snapshot


def check_fits(adapter: Adapter, base: CheckpointInfo) -> None:
    """Raise CheckpointError if a matrix does not fit the base's weight. Bases without safetensors are not checked here:
    merging or serving the adapter then reports the error."""
    weights = base.shapes
    if not weights:
        return
    tails = {_tail(name): name for name in weights}
    transposed = bool(adapter.settings.get("fan_in_fan_out"))
    for name, shape in sorted(adapter.shapes.items()):
        weight, expected = _weight_of(name, shape, adapter.shapes, transposed=transposed)
        if weight is None:
            continue
        actual = weights.get(weight) or weights.get(tails.get(_tail(weight), ""))
        if actual is None:
            raise CheckpointError(
                f"{adapter.path} changes {weight}, which {base.path} does not have: it is an adapter of another model"
                + (f" ({adapter.base})" if adapter.base else "")
            )
        if actual != expected:
            raise CheckpointError(
                f"{adapter.path} does not fit {base.path}: {weight} is {_by(actual)} there, but the adapter is for "
                f"{_by(expected)}" + (f" (trained on {adapter.base})" if adapter.base else "")
            )


def _by(shape: Shape) -> str:
    return " x ".join(map(str, shape))


def _tail(name: str) -> str:
    """Return a weight's name from `layers.` on: its beginning differs between files and the running model."""
    at = name.find("layers.")
    return name if at < 0 else name[at:]


def _weight_of(
    name: str, shape: Shape, shapes: Mapping[str, Shape], *, transposed: bool
) -> tuple[str | None, Shape]:
    """Return (the base's weight that this tensor changes, the shape that the weight must have); (None, ()) for the
    second tensor of a pair."""
    own = name.removeprefix(_PREFIX)
    if own.endswith(".lora_A.weight"):
        module = own.removesuffix(".lora_A.weight")
        other = shapes.get(name.replace(".lora_A.", ".lora_B."), ())
        _require_pair(name, shape, other)
        whole = (shape[1], other[0]) if transposed else (other[0], shape[1])
        return f"{module}.weight", whole
    if own.endswith(".lora_embedding_A"):
        other = shapes.get(name.removesuffix("A") + "B", ())
        _require_pair(name, shape, other)
        return f"{own.removesuffix('.lora_embedding_A')}.weight", (shape[1], other[0])
    if ".lora_" in own:
        return None, ()
    return own.replace(".base_layer.", ".").replace(".modules_to_save.", "."), shape


def _require_pair(name: str, first: Shape, second: Shape) -> None:
    if len(first) != 2 or len(second) != 2 or second[1] != first[0]:
        raise CheckpointError(
            f"{WEIGHTS}: {name} ({_by(first)}) and its partner ({_by(second) or 'missing'}) have different ranks"
        )


def require_servable(adapter: Adapter, base: CheckpointInfo) -> None:
    """Raise CheckpointError for an adapter that vLLM cannot load on a server of its base; it can still be merged."""
    parts = {name.removeprefix(_PREFIX) for name in adapter.shapes}
    problems = {
        "DoRA": bool(adapter.settings.get("use_dora")),
        "whole weights of its own (modules_to_save)": any(".lora_" not in name for name in parts),
        "a tokenizer or chat template other than its base's": not _same_tokenizer(adapter, base),
        f"a rank above {_VLLM_RANKS[-1]}": adapter.rank > _VLLM_RANKS[-1],
    }
    for problem, there in problems.items():
        if there:
            raise CheckpointError(
                f"{adapter.path} has {problem}, which vLLM cannot serve without merging; leave --lora-serve out, "
                "and evalharness merges it"
            )


def _same_tokenizer(adapter: Adapter, base: CheckpointInfo) -> bool:
    """Return whether the vocabularies are equal. The files may differ: each library version writes other files."""

    def meaning(folder: Path, name: str) -> Any:
        path = folder / name
        if name == "tokenizer.json":
            value = read_json(path)
            model = value.get("model")
            return value.get("added_tokens"), model.get("vocab") if isinstance(model, dict) else None
        return read_bytes(path).decode(errors="replace").strip()

    for name in ("tokenizer.json", "vocab.json", "merges.txt"):
        if name in adapter.own_files and (
            not (base.path / name).is_file() or meaning(adapter.path, name) != meaning(base.path, name)
        ):
            return False
    own = _template(adapter.path)
    return own is None or own == _template(base.path)


def _template(folder: Path) -> str | None:
    path = folder / "chat_template.jinja"
    if path.is_file():
        return read_bytes(path).decode(errors="replace").strip()
    path = folder / "tokenizer_config.json"
    value = read_json(path).get("chat_template") if path.is_file() else None
    return value.strip() if isinstance(value, str) else None
