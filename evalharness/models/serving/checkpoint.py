"""Check before any server starts that a folder is a model that vLLM can load, and compute its identity."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, NonNegativeInt, TypeAdapter

from evalharness.base.errors import UserError
from evalharness.base.reading import open_file, read_object, read_text, sha256_of

FULL_HASH_BYTES = 2_000_000_000
"""Maximum bytes of weights that are hashed completely, which takes seconds; of larger weights, samples are hashed."""

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "tekken.json",
    "spiece.model",
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
)
_VOCABULARIES = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "tekken.json",
    "spiece.model",
)
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
_NOT_WEIGHTS = (
    "training_args.bin",
    "optimizer.bin",
    "scheduler.bin",
    "optimizer.pt",
    "scheduler.pt",
    "rng_state.pth",
)
# vLLM reads a model's context length from these keys and takes the smallest.
_LENGTH_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)


Shape = tuple[int, ...]


class CheckpointError(UserError):
    """The folder cannot be served; the message is one line that says why and what to do."""


@dataclass(frozen=True)
class CheckpointInfo:
    path: Path
    architecture: str
    """The first of config.json's `architectures`, otherwise its `model_type`."""
    max_position_embeddings: int | None
    """Maximum context length in tokens, if the checkpoint states it."""
    has_chat_template: bool | None
    """None if not known: vLLM has built-in templates for Mistral tokenizers and some multimodal models."""
    weight_files: tuple[str, ...]
    weight_bytes: int

    @property
    def hashes_weights(self) -> bool:
        """Whether `identity` hashes the weights whole: they have at most `FULL_HASH_BYTES`."""
        return self.weight_bytes <= FULL_HASH_BYTES

    @property
    def dtype(self) -> str:
        """The data type of the weights."""
        config = read_json(self.path / "config.json")
        text = config.get("text_config")
        dtype = config.get("dtype") or config.get("torch_dtype")
        if dtype is None and isinstance(text, dict):
            dtype = text.get("dtype") or text.get("torch_dtype")
        return dtype if dtype in ("float32", "bfloat16", "float16") else "float32"

    @property
    def shapes(self) -> dict[str, Shape]:
        """Shapes of the weights in safetensors files, by name."""
        files = [name for name in self.weight_files if name.endswith(".safetensors")]
        return {name: shape for file in files for name, shape in tensor_shapes(self.path / file).items()}

    @cached_property
    def identity(self) -> str:
        """SHA-256 of the checkpoint, independent of the folder's path. Reads every hashed file.

        It hashes name and content of config.json, tokenizer files and chat templates, and name, size and content of
        every weight file. If the weights are too large to hash whole, pieces spread evenly over each file are hashed:
        a training that overwrites a checkpoint keeps names and sizes, but changes nearly every weight.
        """
        names = [name for name in ("config.json", *TOKENIZER_FILES) if (self.path / name).is_file()]
        names += [entry.name for entry in self.path.glob("*.tiktoken")]
        digest = hashlib.sha256()
        for name in sorted(names):
            digest.update(f"{name}\0{sha256_of(self.path / name)}\n".encode())
        for name in sorted(self.weight_files):
            path = self.path / name
            content = sha256_of(path) if self.hashes_weights else _hash_samples(path)
            digest.update(f"{name}\0{path.stat().st_size}\0{content}\n".encode())
        return digest.hexdigest()


def is_local(model: str | Path) -> bool:
    """Return whether `--model` names a folder and not a hub id: the folder exists, or the text is written as a path."""
    text = str(model)
    return text.startswith(("/", "./", "../", "~", ".\\")) or text in (".", "..") or Path(text).exists()


def check_checkpoint(path: str | Path) -> CheckpointInfo:
    """Validate a local model folder without loading it. Raises `CheckpointError`."""
    folder = Path(path).expanduser()
    _check_folder(folder)
    names = {entry.name for entry in folder.iterdir()}
    if "config.json" not in names:
        raise CheckpointError(_why_no_config(folder, names))
    config = read_json(folder / "config.json")
    architectures = config.get("architectures")
    architecture = (
        architectures[0] if isinstance(architectures, list) and architectures else config.get("model_type")
    )
    if not isinstance(architecture, str):
        raise CheckpointError(
            f"{folder / 'config.json'} names no `architectures` and no `model_type`: not a model"
        )
    weights = _weights(folder, names)
    if not names & set(_VOCABULARIES) and not any(name.endswith((".tiktoken", ".model")) for name in names):
        raise CheckpointError(
            f"{folder} has no tokenizer (tokenizer.json, tokenizer.model); copy the base model's there"
        )
    return CheckpointInfo(
        path=folder,
        architecture=architecture,
        max_position_embeddings=_context_length(folder, config),
        has_chat_template=_has_chat_template(folder, names, config),
        weight_files=tuple(weight.name for weight in weights),
        weight_bytes=sum(weight.stat().st_size for weight in weights),
    )


def model_context_length(model: str | Path) -> int | None:
    """Return the maximum context length of a local folder, or of a hub id's copy in the cache; None if not known."""
    folder = find_model_folder(model)
    config = model_config(model)
    return None if folder is None or config is None else _context_length(folder, config)


def model_config(model: str | Path) -> dict[str, Any] | None:
    """Read `config.json` of a local folder, or of a hub id's copy in the cache; None if there is none."""
    folder = find_model_folder(model)
    if folder is None or not (folder / "config.json").is_file():
        return None
    return read_json(folder / "config.json")


def find_model_folder(model: str | Path) -> Path | None:
    """Return a local folder, or a hub id's copy in the cache; None if there is no copy."""
    return Path(model).expanduser() if is_local(model) else find_cached_snapshot(str(model))


def find_cached_snapshot(model: str, revision: str = "main") -> Path | None:
    """Return the folder of a hub id in the user's cache; None if it is not there."""
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    repository = Path(os.environ.get("HF_HUB_CACHE", home / "hub")) / f"models--{model.replace('/', '--')}"
    try:
        commit = (repository / "refs" / revision).read_text().strip()
    except OSError:
        commit = revision  # `revision` is a commit id, for which refs has no file
    folder = repository / "snapshots" / commit
    return folder if folder.is_dir() else None


def _check_folder(folder: Path) -> None:
    if not folder.exists():
        raise CheckpointError(f"no such model folder: {folder}")
    if not folder.is_dir():
        if folder.suffix == ".gguf":
            raise CheckpointError(
                f"{folder} is a GGUF file; give a Hugging Face checkpoint folder (config.json, safetensors)"
            )
        raise CheckpointError(f"{folder} is a file; give the folder that holds config.json and the weights")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise CheckpointError(f"{folder} cannot be read: permission denied")


def _why_no_config(folder: Path, names: set[str]) -> str:
    if "adapter_config.json" in names:
        base = read_json(folder / "adapter_config.json").get("base_model_name_or_path") or "BASE"
        return (
            f"{folder} holds a LoRA adapter of {base}, not a whole model; give --model BASE --lora {folder}"
        )
    inner = sorted(entry.name for entry in folder.iterdir() if (entry / "config.json").is_file())
    if inner:
        return f"{folder} has no config.json, but its folder {inner[-1]} has: give {folder / inner[-1]}"
    if any(name.endswith((".distcp", ".metadata")) or name.startswith("global_step") for name in names):
        return f"{folder} holds a sharded training state; export it to a Hugging Face checkpoint first"
    if not names:
        return f"{folder} is empty"
    return f"{folder} has no config.json: not a Hugging Face checkpoint"


def read_json(path: Path) -> dict[str, Any]:
    try:
        # Like the libraries, accept `Infinity` in a configuration (`time_step_limit` of Mamba 2).
        data = json.loads(read_text(path))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not valid JSON ({error}); copy the checkpoint again") from error
    if not isinstance(data, dict):
        raise CheckpointError(f"{path} is not a JSON object; copy the checkpoint again")
    return data


def _weights(folder: Path, names: set[str]) -> list[Path]:
    """Return the weight files. Raises CheckpointError if a shard of an index is missing, or a file has no weights."""
    weights = {name for name in names if name.endswith(_WEIGHTS) and name not in _NOT_WEIGHTS}
    safetensors = {name for name in weights if name.endswith(".safetensors")}
    adapters = {name for name in weights if name.startswith("adapter_model")}
    for index in sorted(name for name in names if name.endswith(".index.json")):
        if safetensors and ".safetensors" not in index:
            continue
        shards = read_json(folder / index).get("weight_map")
        missing = sorted(set(map(str, shards.values())) - names) if isinstance(shards, dict) else []
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise CheckpointError(
                f"{folder} lacks the weight file {missing[0]}{more}; copy the checkpoint again"
            )
    if not weights - adapters:
        raise CheckpointError(f"{folder} has no weights (no .safetensors or .bin file)")
    chosen = sorted(folder / name for name in (safetensors or weights) - adapters)
    for path in chosen:
        check_weight_file(path)
    return chosen


def check_weight_file(path: Path) -> None:
    try:
        with open_file(path) as file:
            head = file.read(64)
        size = path.stat().st_size
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    if head.startswith(b"version https://git-lfs"):
        raise CheckpointError(
            f"{path} is a Git LFS pointer, not the weights; run `git lfs pull` in {path.parent}"
        )
    if path.suffix == ".safetensors":
        tensor_shapes(path)
    elif not size:
        raise CheckpointError(f"{path} is empty; copy the checkpoint again")


class _Tensor(BaseModel):
    shape: tuple[NonNegativeInt, ...]
    data_offsets: tuple[NonNegativeInt, NonNegativeInt]


_HEADER = TypeAdapter(dict[str, _Tensor])
_LONGEST_HEADER = 100_000_000
"""Maximum bytes of a header; the safetensors library has the same limit."""


def tensor_shapes(path: Path) -> dict[str, Shape]:
    """Read name -> shape of every tensor from a safetensors file's header. Raises CheckpointError if the header cannot
    be read, or the file has not the length that the header states."""
    size = path.stat().st_size
    with open_file(path) as file:
        length = int.from_bytes(file.read(8), "little")
        header = file.read(length) if length <= _LONGEST_HEADER else b""
    try:
        fields = read_object(header)
        fields.pop("__metadata__", None)
        tensors = _HEADER.validate_python(fields)
    except ValueError:
        problem = "its header cannot be read"
    else:
        expected = 8 + length + max((tensor.data_offsets[1] for tensor in tensors.values()), default=0)
        if expected == size:
            return {name: tensor.shape for name, tensor in tensors.items()}
        problem = f"{size} bytes, {expected} by its header"
    raise CheckpointError(f"{path} is damaged or cut short ({problem}); copy the checkpoint again")


def _context_length(folder: Path, config: dict[str, Any]) -> int | None:
    text = config.get("text_config")
    section = text if isinstance(text, dict) else config
    lengths = [section[key] for key in _LENGTH_KEYS if isinstance(section.get(key), int) and section[key] > 0]
    tokenizer = folder / "tokenizer_config.json"
    if lengths and tokenizer.is_file():
        limit = read_json(tokenizer).get("model_max_length")
        if isinstance(limit, int | float) and 0 < limit < 1e18:  # 1e30 and Infinity mean no limit
            lengths.append(int(limit))
    return min(lengths, default=None)


def _has_chat_template(folder: Path, names: set[str], config: dict[str, Any]) -> bool | None:
    if (
        names & {"chat_template.jinja", "chat_template.json"}
        or (folder / "additional_chat_templates").is_dir()
    ):
        return True
    tokenizer = folder / "tokenizer_config.json"
    if tokenizer.is_file() and read_json(tokenizer).get("chat_template"):
        return True
    is_mistral = "tekken.json" in names or any(name.startswith("tokenizer.model.") for name in names)
    return None if is_mistral or "text_config" in config or "vision_config" in config else False


def _hash_samples(path: Path, pieces: int = 256, piece_bytes: int = 65_536) -> str:
    """Return the SHA-256 of pieces spread evenly over the file: 16 MiB of any file."""
    digest = hashlib.sha256()
    last = max(path.stat().st_size - piece_bytes, 0)
    with open_file(path) as file:
        for number in range(pieces):
            file.seek(last * number // (pieces - 1))
            digest.update(file.read(piece_bytes))
    return digest.hexdigest()
