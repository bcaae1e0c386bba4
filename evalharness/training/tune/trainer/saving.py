"""Complete the folder of a checkpoint.

This file runs in the training environment, so it imports nothing of this package.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

RECORD = "evalharness_tune.json"
"""The file that is written last into a checkpoint. A checkpoint without this file is incomplete."""


def write(path: Path, value: Any) -> None:
    """Write the value as JSON, either the whole file or nothing, and wait until the file is on the disk."""
    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(json.dumps(value, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def tidy(folder: Path, job: dict[str, Any]) -> None:
    """Replace the saved tokenizer files by the base model's files, because loading and saving can change a tokenizer.
    For an adapter, remove the tokenizer files, and name the demo base by its name instead of its path."""
    for name in [*job["tokenizer_files"], "README.md"]:
        (folder / name).unlink(missing_ok=True)
    adapter = folder / "adapter_config.json"
    if job.get("base_name") and adapter.is_file():  # `demo-base` is valid on every machine; its path is not
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
    """Write the chat template of the training. Write the template's end-of-turn token to `tokenizer_config.json` and
    `generation_config.json`, from which servers read the tokens that end a reply."""
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
    """Convert the weights of a finished model to the number format of the base model's files. Servers load this format,
    and bfloat16 has half the bytes of float32."""
    import torch  # type: ignore[import-not-found, unused-ignore]
    from safetensors import safe_open  # type: ignore[import-not-found, unused-ignore]
    from safetensors.torch import save_file  # type: ignore[import-not-found, unused-ignore]

    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(str(path), framework="pt") as file:
            metadata = file.metadata()
            names = list(file.keys())
            tensors = {name: file.get_tensor(name).to(getattr(torch, dtype)).contiguous() for name in names}
        part = path.with_name(f".{path.name}.part")
        save_file(tensors, str(part), metadata=metadata)
        part.replace(path)
    config = folder / "config.json"
    if config.is_file():
        write(config, {**json.loads(config.read_text(encoding="utf-8")), "dtype": dtype})
