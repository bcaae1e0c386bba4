"""What a checkpoint's folder holds in the end.

Run by the training environment's Python; needs nothing of this package.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

RECORD = "evalharness_tune.json"
"""Written last into a checkpoint: without it a kill came between."""


def write(path: Path, value: Any) -> None:
    """Whole or not at all, and on the disk."""
    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(json.dumps(value, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def tidy(folder: Path, job: dict[str, Any]) -> None:
    """The tokenizer as the base has it: read and written again it can come out another one. An adapter needs none."""
    for name in [*job["tokenizer_files"], "README.md"]:
        (folder / name).unlink(missing_ok=True)
    if job["method"] == "full":
        for name in job["tokenizer_files"]:
            source = Path(job["model"], name)
            if source.is_file():
                (folder / name).write_bytes(source.read_bytes())


def rounded(folder: Path, dtype: str) -> None:
    """The weights of a finished model in the type that the base is stored in: half the bytes of float32, and what
    servers make of them when they load them."""
    import torch  # type: ignore[import-not-found, unused-ignore]
    from safetensors import safe_open  # type: ignore[import-not-found, unused-ignore]
    from safetensors.torch import save_file  # type: ignore[import-not-found, unused-ignore]

    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(str(path), framework="pt") as file:
            said = file.metadata()
            names = list(file.keys())
            tensors = {name: file.get_tensor(name).to(getattr(torch, dtype)).contiguous() for name in names}
        part = path.with_name(f".{path.name}.part")
        save_file(tensors, str(part), metadata=said)
        part.replace(path)
    config = folder / "config.json"
    if config.is_file():
        write(config, {**json.loads(config.read_text(encoding="utf-8")), "dtype": dtype})
