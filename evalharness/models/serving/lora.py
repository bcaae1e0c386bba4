"""A LoRA adapter's folder: is it whole, and does it belong to this base model? Answered from the files' headers."""

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
    cached_snapshot,
    check_weight_file,
    is_local,
    read_json,
    tensor_shapes,
)

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PREFIX = "base_model.model."
_VLLM_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""What `--max-lora-rank` takes (vLLM 0.32)."""


@dataclass(frozen=True)
class Adapter:
    path: Path
    base: str | None
    """The base model as the training named it: a folder, or a hub id."""
    revision: str
    rank: int
    """The largest rank of all its matrices."""
    settings: Mapping[str, Any]
    """`adapter_config.json`."""
    shapes: Mapping[str, Shape]

    @property
    def name(self) -> str:
        return real_path(self.path).name

    @property
    def own_files(self) -> tuple[str, ...]:
        """Tokenizer files and chat templates that came with the adapter."""
        return tuple(name for name in TOKENIZER_FILES if (self.path / name).is_file())

    @cached_property
    def identity(self) -> str:
        """SHA-256 of the weights and of what decides how they count, the same wherever adapter and base lie."""
        unimportant = ("base_model_name_or_path", "revision", "inference_mode", "peft_version")
        counted = {key: value for key, value in self.settings.items() if key not in unimportant}
        digest = hashlib.sha256(json.dumps(counted, sort_keys=True).encode())
        for name in sorted((WEIGHTS, *self.own_files)):
            digest.update(f"{name}\0{sha256_of(self.path / name)}\n".encode())
        return digest.hexdigest()

    @property
    def max_rank(self) -> int:
        """For vLLM's `--max-lora-rank`."""
        return next((rank for rank in _VLLM_RANKS if rank >= self.rank), self.rank)


def is_adapter(folder: str | Path) -> bool:
    """Whether a local folder holds an adapter and no whole model."""
    path = Path(folder).expanduser()
    return is_local(folder) and (path / CONFIG).is_file() and not (path / "config.json").exists()


def check_adapter(folder: str | Path) -> Adapter:
    """Raises CheckpointError where the folder does not hold a whole LoRA adapter."""
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise CheckpointError(f"--lora {folder}: no such folder")
    if not (path / CONFIG).is_file():
        raise CheckpointError(f"--lora {folder} has no {CONFIG}: not a LoRA adapter")
    settings = read_json(path / CONFIG)
    if settings.get("peft_type") != "LORA":
        raise CheckpointError(
            f"{path} is an adapter of type {settings.get('peft_type')!r}; only LORA is known here: merge it with the "
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
    found = {shape[0] for name, shape in shapes.items() if _is_first(name) and shape}
    if not found:
        raise CheckpointError(f"{path / WEIGHTS} has no LoRA matrices")
    if other := [rank for rank in found if rank not in stated]:
        says = ", ".join(sorted({str(rank) for rank in stated}))
        raise CheckpointError(
            f"{path}: {CONFIG} says rank {says}, and {WEIGHTS} has matrices of rank {max(other)}; "
            "they are not of one adapter"
        )
    return max(found)


def _is_first(name: str) -> bool:
    return name.endswith((".lora_A.weight", ".lora_embedding_A"))


def find_base(adapter: Adapter) -> Path:
    """The base model's folder, where the adapter's own word for it leads to one on this machine."""
    advice = f"give it yourself: --model BASE --lora {adapter.path}"
    if adapter.base is None:
        raise CheckpointError(f"{adapter.path / CONFIG} does not name its base model; {advice}")
    for folder in (Path(adapter.base).expanduser(), adapter.path / adapter.base):
        if (folder / "config.json").is_file():
            return folder
    found = None if is_local(adapter.base) else cached_snapshot(adapter.base, adapter.revision)
    if found is None or not (found / "config.json").is_file():
        where = "no such folder here" if is_local(adapter.base) else "neither a folder nor in the hub cache"
        raise CheckpointError(f"{adapter.path} is an adapter of {adapter.base}, which is {where}; {advice}")
    return found


def check_fits(adapter: Adapter, base: CheckpointInfo) -> None:
    """Raises CheckpointError where a matrix does not fit the base's weight. Bases without safetensors are not looked
    into: what merges or serves the adapter finds it out then."""
    weights = base.shapes
    if not weights:
        return
    tails = {_tail(name): name for name in weights}
    turned = bool(adapter.settings.get("fan_in_fan_out"))
    for name, shape in sorted(adapter.shapes.items()):
        weight, wanted = _changes(name, shape, adapter.shapes, turned=turned)
        if weight is None:
            continue
        found = weights.get(weight) or weights.get(tails.get(_tail(weight), ""))
        if found is None:
            raise CheckpointError(
                f"{adapter.path} changes {weight}, which {base.path} does not have: it is an adapter of another model"
                + (f" ({adapter.base})" if adapter.base else "")
            )
        if found != wanted:
            raise CheckpointError(
                f"{adapter.path} does not fit {base.path}: {weight} is {_by(found)} there, and the adapter is for "
                f"{_by(wanted)}" + (f" (trained on {adapter.base})" if adapter.base else "")
            )


def _by(shape: Shape) -> str:
    return " x ".join(map(str, shape))


def _tail(name: str) -> str:
    """From the layers on: what wraps them is called otherwise in some files than in the running model."""
    at = name.find("layers.")
    return name if at < 0 else name[at:]


def _changes(
    name: str, shape: Shape, shapes: Mapping[str, Shape], *, turned: bool
) -> tuple[str | None, Shape]:
    """(the base's weight that this tensor changes, the shape that it must have); (None, ()) for a part that is looked
    at with another."""
    own = name.removeprefix(_PREFIX)
    if own.endswith(".lora_A.weight"):
        module = own.removesuffix(".lora_A.weight")
        other = shapes.get(name.replace(".lora_A.", ".lora_B."), ())
        _require_pair(name, shape, other)
        whole = (shape[1], other[0]) if turned else (other[0], shape[1])
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
            f"{WEIGHTS}: {name} ({_by(first)}) and its partner ({_by(second) or 'missing'}) are no pair of one rank"
        )


def require_servable(adapter: Adapter, base: CheckpointInfo) -> None:
    """Raises CheckpointError for an adapter that vLLM cannot keep beside its base; merged it can be played."""
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
                f"{adapter.path} has {problem}, which vLLM cannot serve beside the base; leave --lora-serve out and "
                "it is merged"
            )


def _same_tokenizer(adapter: Adapter, base: CheckpointInfo) -> bool:
    """Tokenizer files are written a little differently by every version of the libraries: what they mean counts."""

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
