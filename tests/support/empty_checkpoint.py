"""A model folder that passes every check made before a server starts, and holds no model."""

from __future__ import annotations

import json
import struct
from pathlib import Path


def write_safetensors(path: Path, values: bytes = b"\0" * 8) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, len(values)]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + values)


def make_empty_checkpoint(folder: Path) -> Path:
    folder.mkdir()
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "max_position_embeddings": 4096}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    write_safetensors(folder / "model.safetensors")
    return folder
