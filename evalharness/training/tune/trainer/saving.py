"""Complete the folder of a checkpoint.

The training environment's Python runs this file, which therefore imports nothing of this package.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

RECORD = "evalharness_tune.json"
"""The file that is written last into a checkpoint. A checkpoint without it is incomplete."""


def write(path: Path, value: Any) -> None:
    """Write the whole file or nothing, and wait until it is on the disk."""
    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(json.dumps(value, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def tidy(folder: Path, job: dict[str, Any]) -> None:
    """Copy the base's tokenizer files, because a tokenizer that is read and written again can differ. Do not save
    tokenizer files for an adapter, and write the base's name as the user gave it."""
    for name in [*job["tokenizer_files"], "README.md"]:
        (folder / name).unlink(missing_ok=True)
    adapter = folder / "adapter_config.json"
    if job.get("base_name") and adapter.is_file():  # a name that is valid on every machine
        config = json.loads(adapter.read_text(encoding="utf-8"))
        write(adapter, {**config, "base_model_name_or_path": job["base_name"]})
    if job["method"] == "full":
        for name in job["tokenizer_files"]:
            source = Path(job["model"], name)
            if source.is_file():
                (folder / name).write_bytes(source.read_bytes())
    if job["chat_template"] is not None:
        _write_template(folder, job)


def _write_template(folder: Path, job: dict[str, Any]) -> None:
    """Write the chat template of the training. Write its end-of-turn token to the tokenizer's and the generation's
    configuration, where servers look for the end of a reply."""
    base = Path(job["model"])
    (folder / "chat_template.jinja").write_text(job["chat_template"], encoding="utf-8")
    tokenizer = json.loads((base / "tokenizer_config.json").read_text(encoding="utf-8"))
    tokenizer.pop("chat_template", None)
    generation_file = base / "generation_config.json"
    generation = json.loads(generation_file.read_text(encoding="utf-8")) if generation_file.is_file() else {}
    before = generation.get("eos_token_id")
    known = before if isinstance(before, list) else [] if before is None else [before]
    generation["eos_token_id"] = sorted({*known, *job["end_ids"]})
    if job["end_token"] is not None:
        tokenizer["eos_token"] = job["end_token"]
    write(folder / "tokenizer_config.json", tokenizer)
    write(folder / "generation_config.json", generation)


def convert_weights(folder: Path, dtype: str) -> None:
    """Convert the weights of a finished model to the base's stored type: half the bytes of float32, and the type in
    which servers load them."""
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
