"""Which GPUs, or which CPU cores, each of several servers gets, and what `--deterministic` asks of them."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from evalharness.base.errors import UserError
from evalharness.models.serving.arguments import THREADS_BIND, cpu_cache_gib, memory_bytes, option_value
from evalharness.models.serving.checkpoint import model_config
from evalharness.models.serving.private import Kind

_PARALLEL = ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size")
_SHORT = {"-tp": _PARALLEL[0], "-pp": _PARALLEL[1], "-dp": _PARALLEL[2]}
LEAST_CAPABILITY = 8.0
"""Of an NVIDIA GPU (Ampere): vLLM's batch-invariant kernels are written for these and later ones."""


def gpus_of_one(extra: Sequence[str]) -> int:
    """GPUs that one server needs: the product of its parallel sizes."""
    return math.prod(_size(extra, name) for name in _PARALLEL)


def _size(extra: Sequence[str], name: str) -> int:
    """At least 1, which is vLLM's default; it refuses itself what is no size."""
    words = [f"--{_SHORT[word]}" if word in _SHORT else word for word in extra]
    value = option_value(words, name) or ""
    return max(1, int(value)) if value.isdecimal() else 1


def data_parallel_doubt(model: str, extra: Sequence[str]) -> str | None:
    """What speaks against `--data-parallel-size` for a dense model; None where nothing does, or the model's
    configuration is not at hand."""
    size = _size(extra, "data-parallel-size")
    config = model_config(model)
    if size < 2 or config is None or _has_experts(config):
        return None
    return (
        f"--data-parallel-size {size} scatters the turns of an episode over {size} caches; for a model without experts "
        f"--replicas {size} keeps each episode on the cache that knows it"
    )


def _has_experts(config: Mapping[str, Any]) -> bool:
    inner = config.get("text_config")
    keys = {*config, *(inner if isinstance(inner, dict) else ())}
    return any("expert" in key or "moe" in key for key in keys)


def visible_gpus(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The GPUs that servers may use, as `CUDA_VISIBLE_DEVICES` names them: the user's choice, else all."""
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        names = (name.strip() for name in chosen.split(","))
        # As CUDA reads it: nothing that follows is seen.
        return list(takewhile(lambda name: name not in ("", "-1"), names))
    return _of_each_gpu("index", environment)


def _of_each_gpu(what: str, environment: Mapping[str, str], *chosen: str) -> list[str]:
    """What nvidia-smi says; empty where it shows none, or is not there."""
    program = shutil.which("nvidia-smi", path=environment.get("PATH"))
    if program is None:
        return []
    command = [program, f"--query-gpu={what}", "--format=csv,noheader", *chosen]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def place_on_gpus(replicas: int, each: int, gpus: Sequence[str]) -> list[dict[str, str]]:
    """Environment variables of each server: GPU sets that do not overlap. Raises UserError when there are too few."""
    if replicas == 1:
        return [{}]  # vLLM sees what the user lets it see
    if replicas * each > len(gpus):
        raise UserError(
            f"--replicas {replicas} needs {replicas * each} GPUs ({each} each) and {len(gpus)} are visible; "
            f"at most {len(gpus) // each} replicas fit"
        )
    return [
        {"CUDA_VISIBLE_DEVICES": ",".join(gpus[index * each : (index + 1) * each])}
        for index in range(replicas)
    ]


def place_on_cores(
    replicas: int, cores: Sequence[int], environment: Mapping[str, str] = os.environ
) -> list[dict[str, str]]:
    """Environment variables of each CPU server: cores that do not overlap, and its part of the cache memory."""
    if replicas > len(cores):
        raise UserError(
            f"--replicas {replicas}: a CPU server needs a core of its own and there are {len(cores)}"
        )
    if replicas == 1:
        return [{}]  # alone it has them all (`arguments.server_environment`)
    variables: list[dict[str, str]] = [{} for _ in range(replicas)]
    for index, own in enumerate(variables):
        if THREADS_BIND not in environment:
            share = cores[index * len(cores) // replicas : (index + 1) * len(cores) // replicas]
            own[THREADS_BIND] = ",".join(map(str, share))
        if "VLLM_CPU_KVCACHE_SPACE" not in environment:
            own["VLLM_CPU_KVCACHE_SPACE"] = str(max(1, cpu_cache_gib(memory_bytes()) // replicas))
    return variables


def batch_invariance(kind: Kind, capabilities: Sequence[float]) -> dict[str, str]:
    """Environment variables for a server. `capabilities`: of the GPUs that it may see.

    Raises UserError where the device cannot do it.
    """
    if kind == "cpu":
        raise UserError(
            "--deterministic: vLLM for CPU has no batch-invariant kernels; there, --concurrency 1 computes one "
            "reply at a time"
        )
    if not capabilities:
        raise UserError("--deterministic needs an NVIDIA GPU, and nvidia-smi shows none")
    if min(capabilities) < LEAST_CAPABILITY:
        raise UserError(
            f"--deterministic needs compute capability {LEAST_CAPABILITY}, and a GPU here has {min(capabilities)}"
        )
    return {"VLLM_BATCH_INVARIANT": "1"}


def compute_capabilities(environment: Mapping[str, str] = os.environ) -> list[float]:
    """Of the GPUs that a server may see; empty where none is shown."""
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None and chosen.strip() in ("", "-1"):
        return []
    try:
        only = () if chosen is None else (f"--id={chosen}",)
        return [float(line) for line in _of_each_gpu("compute_cap", environment, *only)]
    except ValueError:
        return []
