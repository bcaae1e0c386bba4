"""`--deterministic`: vLLM's batch invariance, a reply that does not depend on what else is computed with it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from evalharness.errors import UserError
from evalharness.server.private import Kind

LEAST_CAPABILITY = 8.0
"""Of an NVIDIA GPU (Ampere): vLLM's batch-invariant kernels are written for these and later ones."""


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
    program = shutil.which("nvidia-smi", path=environment.get("PATH"))
    if program is None:
        return []
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    command = [program, "--query-gpu=compute_cap", "--format=csv,noheader"]
    if chosen is not None:
        if not chosen.strip() or chosen.strip() == "-1":
            return []
        command.append(f"--id={chosen}")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return [float(line) for line in done.stdout.splitlines() if line.strip()]
    except (OSError, subprocess.SubprocessError, ValueError):
        return []
