"""LoRA adapters and weight files written by hand, byte by byte, as safetensors."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensors = Mapping[str, NDArray[np.float32]]


def write_tensors(path: Path, tensors: Tensors) -> None:
    """All as float32."""
    header: dict[str, Any] = {}
    at = 0
    for name, values in tensors.items():
        header[name] = {
            "dtype": "F32",
            "shape": list(values.shape),
            "data_offsets": [at, at + 4 * values.size],
        }
        at += 4 * values.size
    text = json.dumps(header).encode()
    data = b"".join(values.astype("<f4").tobytes() for values in tensors.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_tensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """Of float32 and bfloat16 files."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    found = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        first, last = (8 + length + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            values = (np.frombuffer(data[first:last], "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(data[first:last], "<f4")
        found[name] = values.reshape(entry["shape"])
    return found


def matrices(
    modules: Mapping[str, tuple[int, int]], rank: int, seed: int = 0, scale: float = 1.0
) -> dict[str, NDArray[np.float32]]:
    """Module -> (rows, columns) of its weight, as an adapter's file names them. Values are multiples of `scale`/8, so
    that sums of products are exact."""
    rng = np.random.default_rng(seed)
    tensors = {}
    for module, (rows, columns) in modules.items():
        for part, shape in (("A", (rank, columns)), ("B", (rows, rank))):
            values = rng.integers(-4, 5, shape) * (scale / 8)
            tensors[f"base_model.model.{module}.lora_{part}.weight"] = values.astype(np.float32)
    return tensors


def make_adapter(folder: Path, tensors: Tensors, *, rank: int, base: object = None, **settings: Any) -> Path:
    folder.mkdir(parents=True)
    modules = {name.split(".lora_")[0].rsplit(".", 1)[-1] for name in tensors if ".lora_" in name}
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": None if base is None else str(base),
        "r": rank,
        "lora_alpha": 2 * rank,
        "target_modules": sorted(modules),
        "bias": "none",
        **settings,
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))
    write_tensors(folder / "adapter_model.safetensors", tensors)
    return folder
