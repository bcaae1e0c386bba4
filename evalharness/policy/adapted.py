"""A LoRA adapter and its base as the model of a run: merged into one checkpoint, or on a server of the base."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalharness.config import RunConfig
from evalharness.errors import UserError
from evalharness.server.checkpoint import cached_snapshot, check_checkpoint, is_local
from evalharness.server.demo import DEMO, DEMO_ADAPTER, DEMO_BASE, ensure_demo, is_demo
from evalharness.server.lora import Adapter, check_adapter, check_fits, find_base, require_servable
from evalharness.server.merged import ensure_merged, merged_path
from evalharness.server.with_adapter import VARIABLES, served_as

Status = Callable[[str], None]


@dataclass(frozen=True)
class ToServe:
    """What servers are started for, and as what the model is asked."""

    model: str
    served_name: str
    extra: Sequence[str]
    adapter_name: str | None = None
    """Of the adapter that each server is given once it runs."""
    adapter: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    """For the server's environment."""


def adapted(
    config: RunConfig, extra: Sequence[str], on_status: Status
) -> tuple[dict[str, Any], Callable[[Status], ToServe], ToServe]:
    """(identity, what is served: asked for once servers are wanted, and perhaps minutes of merging; the same as it
    will be, its checkpoint perhaps not made yet).

    Raises UserError for what can be seen to be wrong beforehand.
    """
    adapter = check_adapter(config.lora or (DEMO_ADAPTER if config.model == DEMO else config.model))
    base = check_checkpoint(_base(config, adapter, on_status))
    check_fits(adapter, base)
    if config.lora_serve:
        require_servable(adapter, base)
        if config.cluster:
            raise UserError(
                "--lora-serve is for servers on this machine; with --cluster leave it out, and the adapter is merged"
            )
    on_status("hashing the checkpoint")
    identity = {
        "kind": "vllm",
        "architecture": base.architecture,
        "checkpoint_sha256": base.identity,
        "lora_sha256": adapter.identity,
        "lora_rank": adapter.rank,
    }

    def merge(on_status: Status) -> ToServe:
        merged = ensure_merged(base, adapter, on_status, config.vllm)
        return ToServe(str(merged), config.display_name, extra)

    def keep(on_status: Status) -> ToServe:
        # Nothing of the adapter in what the server is started with: it is the same one for other adapters.
        own = [*extra, "--enable-lora", "--max-lora-rank", str(adapter.max_rank)]
        name = served_as(adapter.identity)
        return ToServe(str(base.path), base.path.name, own, name, adapter.path, VARIABLES)

    if config.lora_serve:
        return identity, keep, keep(on_status)
    return identity, merge, ToServe(str(merged_path(base, adapter)), config.display_name, extra)


def _base(config: RunConfig, adapter: Adapter, on_status: Status) -> Path:
    if config.model == DEMO_BASE or (config.lora is None and adapter.base == DEMO_BASE):
        return ensure_demo(on_status)
    if config.lora is None:
        return find_base(adapter)
    if is_demo(config.model):
        raise UserError(
            f"--model demo is demo-base with an adapter already; for yours: --model demo-base --lora {config.lora}"
        )
    if is_local(config.model):
        return Path(config.model)
    if (found := cached_snapshot(config.model)) is None:
        raise UserError(
            f"--model {config.model}: an adapter's base has to be on this machine, as a folder or in the hub's cache "
            f"(hf download {config.model})"
        )
    return found
