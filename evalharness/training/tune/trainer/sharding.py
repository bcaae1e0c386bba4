"""FSDP2: what accelerate leaves open, and the same on the CPU.

Run by the training environment's Python; needs nothing of this package.
"""

from __future__ import annotations

import os
from typing import Any


def is_sharded() -> bool:
    """Whether accelerate was asked for FSDP."""
    return os.environ.get("ACCELERATE_USE_FSDP", "false").lower() == "true"


def ask_for(settings: dict[str, Any]) -> None:
    """What `accelerate launch` does for a GPU: the file's `fsdp_config` as variables that accelerate reads."""
    os.environ["ACCELERATE_USE_FSDP"] = "true"
    for name, value in settings.items():
        os.environ[name.upper()] = str(value).lower() if isinstance(value, bool) else str(value)


def shard_on_cpu(bf16: bool) -> None:
    """accelerate 1.15 turns several processes into FSDP on GPUs alone, although PyTorch shards over gloo as well: so
    the state that all its parts share is set here, before the trainer asks for it."""
    from accelerate import Accelerator, PartialState  # type: ignore[import-not-found, unused-ignore]
    from accelerate.utils import (  # type: ignore[import-not-found, unused-ignore]
        DistributedType,
        FullyShardedDataParallelPlugin,
    )

    state = Accelerator(cpu=True, mixed_precision="bf16" if bf16 else "no").state
    state.fsdp_plugin = FullyShardedDataParallelPlugin()
    PartialState().distributed_type = state.distributed_type = DistributedType.FSDP


def set_precision(plugin: Any, *, bf16: bool) -> None:
    """Computation in bfloat16, weights and the sum of gradients over the processes in float32. accelerate's own choice
    adds gradients up in bfloat16 and rounds the loss to it (three digits)."""
    from torch.distributed.fsdp import (  # type: ignore[import-not-found, unused-ignore]
        MixedPrecisionPolicy,
    )

    if bf16:
        import torch  # type: ignore[import-not-found, unused-ignore]

        plugin.mixed_precision_policy = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.float32
        )
