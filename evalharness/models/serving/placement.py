"""Assign GPUs to several servers."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from itertools import takewhile

from evalharness.base.errors import UserError
from evalharness.models.serving.arguments import option_value
from evalharness.models.serving.find import ServerCommand

_PARALLEL = ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size")
_SHORT = {"-tp": _PARALLEL[0], "-pp": _PARALLEL[1], "-dp": _PARALLEL[2]}


def gpus_of_one(extra: Sequence[str]) -> int:
    """Return the number of GPUs that one server needs: the product of its parallel sizes."""
    return math.prod(_size(extra, name) for name in _PARALLEL)


def _size(extra: Sequence[str], name: str) -> int:
    """Return the value of a parallel size; 1, vLLM's default, if the size is missing or invalid."""
    words = [f"--{_SHORT[word]}" if word in _SHORT else word for word in extra]
    value = option_value(words, name) or ""
    return max(1, int(value)) if value.isdecimal() else 1


def visible_gpus(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the GPUs that servers may use: those in the user's `CUDA_VISIBLE_DEVICES`, otherwise all."""
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        names = (name.strip() for name in chosen.split(","))
        # Like CUDA, ignore all names after an empty one or -1.
        return list(takewhile(lambda name: name not in ("", "-1"), names))
    program = shutil.which("nvidia-smi", path=environment.get("PATH"))
    if program is None:
        return []
    command = [program, "--query-gpu=index", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def place_replicas(
    replicas: int, command: ServerCommand, extra: Sequence[str], *, deterministic: bool
) -> list[dict[str, str]]:
    """Return the environment variables of each server. Raises UserError if this machine cannot run so many servers."""
    if command.kind == "cpu" and replicas > 1:
        raise UserError("--replicas needs GPUs: a server on a CPU uses all its cores")
    if command.kind == "cpu" and deterministic:
        raise UserError(
            "--deterministic: vLLM for CPU has no batch-invariant kernels; use --concurrency 1 there, which computes "
            "one reply at a time"
        )
    gpus = visible_gpus() if replicas > 1 else []
    invariant = {"VLLM_BATCH_INVARIANT": "1"} if deterministic else {}
    return [variables | invariant for variables in place_on_gpus(replicas, gpus_of_one(extra), gpus)]


def place_on_gpus(replicas: int, each: int, gpus: Sequence[str]) -> list[dict[str, str]]:
    """Return the environment variables of each server, with disjoint sets of GPUs. Raises UserError without enough."""
    if replicas == 1:
        return [{}]  # vLLM uses the GPUs that the user allows
    if replicas * each > len(gpus):
        raise UserError(
            f"--replicas {replicas} needs {replicas * each} GPUs ({each} each), but {len(gpus)} are visible; "
            f"at most {len(gpus) // each} replicas fit"
        )
    return [
        {"CUDA_VISIBLE_DEVICES": ",".join(gpus[index * each : (index + 1) * each])}
        for index in range(replicas)
    ]
