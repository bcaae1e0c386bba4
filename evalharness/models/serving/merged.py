"""Merge a LoRA adapter and its base into an ordinary checkpoint, once, and store it in the cache."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.locks import exclusive
from evalharness.base.paths import cache_folder, server_folder
from evalharness.base.stream import ToolError, run_streaming
from evalharness.models.serving.arguments import memory_bytes
from evalharness.models.serving.checkpoint import TOKENIZER_FILES, CheckpointInfo, check_checkpoint, read_json
from evalharness.models.serving.find import install_command, server_python
from evalharness.models.serving.lora import Adapter
from evalharness.models.serving.merge_lora import NO_PEFT
from evalharness.models.serving.private import read_install

RECORD = "evalharness_merge.json"
_MERGER = Path(__file__).with_name("merge_lora.py")
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


class MergeError(UserError):
    """The adapter could not be merged; the message says why and what to do."""


def choose_merged_folder(base: CheckpointInfo, adapter: Adapter) -> Path:
    """Return the folder for the merged model, which may not exist yet. Different weights have different folders."""
    key = hashlib.sha256(f"{base.identity} {adapter.identity}".encode()).hexdigest()[:16]
    return cache_folder() / "models" / f"merged-{key}"


def ensure_merged(
    base: CheckpointInfo, adapter: Adapter, on_line: Callable[[str], None], vllm: str | None = None
) -> Path:
    """Return the merged checkpoint's folder; make it on first use. `vllm` as in `find_server`. Raises MergeError."""
    folder = choose_merged_folder(base, adapter)
    if (folder / RECORD).is_file():
        return folder
    with exclusive(folder.parent / "merge.lock", lambda: on_line("another process is merging; waiting")):
        if not (folder / RECORD).is_file():
            _make(folder, base, adapter, on_line, vllm)
    return folder


def _make(
    folder: Path,
    base: CheckpointInfo,
    adapter: Adapter,
    on_line: Callable[[str], None],
    vllm: str | None,
) -> None:
    _refuse_quantised(base)
    dtype = base.dtype
    _require_room(folder.parent, base, _BYTES[dtype])
    python = server_python("an adapter is merged", vllm)
    for leftover in folder.parent.glob("merging-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="merging-", dir=folder.parent) as name:
        work = Path(name) / "checkpoint"
        on_line(f"merging {adapter.name} into its base (once)")
        argv: list[str | Path] = [python, "-I", _MERGER]
        argv += [base.path.absolute(), adapter.path.absolute(), work, dtype]
        try:
            run_streaming(argv, lambda line: None)
        except ToolError as failed:
            raise _failure(failed, python, adapter) from failed
        # Copy the tokenizer files: if a library reads and writes them, the tokenizer can change.
        for source in (base.path, adapter.path):
            for file in TOKENIZER_FILES:
                if (source / file).is_file():
                    shutil.copyfile(source / file, work / file)
        record = {"base_sha256": base.identity, "lora_sha256": adapter.identity, "dtype": dtype}
        (work / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        check_checkpoint(work)
        if folder.exists():
            shutil.rmtree(folder)
        work.replace(folder)


def _refuse_quantised(base: CheckpointInfo) -> None:
    if "quantization_config" in read_json(base.path / "config.json"):
        raise MergeError(
            f"{base.path} is quantised; an adapter can only be merged into the model before quantisation: give that "
            "as --model, or serve the adapter with vLLM, without merging: --lora-serve"
        )


def _require_room(folder: Path, base: CheckpointInfo, bytes_each: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    instead = "or serve the adapter with vLLM, without merging: --lora-serve"
    in_float32 = base.weight_bytes // bytes_each * 4
    if in_float32 > memory_bytes():
        raise MergeError(
            f"merging needs {in_float32 / 1e9:.0f} GB of memory, but this machine has {memory_bytes() / 1e9:.0f}; "
            f"merge it on a bigger one, {instead}"
        )
    if shutil.disk_usage(folder).free < 1.1 * base.weight_bytes:
        raise MergeError(
            f"the merged model needs {base.weight_bytes / 1e9:.1f} GB in {folder}; free some space, {instead}"
        )


def _failure(failed: ToolError, python: Path, adapter: Adapter) -> MergeError:
    if failed.returncode == NO_PEFT:
        ours = (install := read_install(server_folder())) is not None and python == install.executable
        command = install_command() if ours else f"{python} -m pip install peft"
        return MergeError(
            f"the server's environment has no peft, which merges adapters; add it with: {command} "
            "(or serve the adapter with vLLM, without merging: --lora-serve)"
        )
    return MergeError(
        f"{adapter.path} could not be merged: {failed.reason}; vLLM can serve it without merging: --lora-serve"
    )
