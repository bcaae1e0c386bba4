"""Start one vLLM or several on this machine for a model.

`resolve_model` makes all checks that are possible before a start; `own_servers` makes the policy that starts the
servers. `serving/managed.py` starts and stops one server, `serving/supervisor.py` its processes.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError, close_to
from evalharness.base.settings import openai_hint
from evalharness.config import SCRIPTED, AgentConfig, PolicyConfig
from evalharness.models.connections import make_client
from evalharness.models.opened import Opened, Prepared, Reports, Status
from evalharness.models.replicas import Replica, connect
from evalharness.models.serving.arguments import extra_arguments, server_arguments
from evalharness.models.serving.checkpoint import check_checkpoint, find_cached_snapshot, is_local
from evalharness.models.serving.demo import DEMO, DEMO_ADAPTER, DEMO_BASE, ensure_demo, is_demo
from evalharness.models.serving.find import ServerCommand, find_server
from evalharness.models.serving.lora import (
    Adapter,
    check_adapter,
    check_fits,
    find_base,
    is_adapter,
    require_servable,
)
from evalharness.models.serving.managed import ManagedServer, default_context
from evalharness.models.serving.merged import choose_merged_folder, ensure_merged
from evalharness.models.serving.model_server import (
    VARIABLES,
    ModelServer,
    SharedServers,
    WithAdapter,
    adapter_name,
)
from evalharness.models.serving.placement import place_replicas

_NAMED = ["demo", "demo-base", *SCRIPTED]


@dataclass(frozen=True)
class ToServe:
    """A model that vLLM servers load at their start, with the arguments of these servers."""

    model: str
    served_name: str
    extra: Sequence[str]
    adapter_name: str | None = None
    """Name of the adapter that each server loads after its start."""
    adapter: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables for the server."""


@dataclass(frozen=True)
class ResolvedModel:
    """The model that `--model` names, before anything is started."""

    identity: dict[str, Any]
    planned: ToServe
    """The model to serve. Its checkpoint may not exist before `make` is called."""
    make: Callable[[Status], ToServe]
    """Make the checkpoint and return `planned`; merging an adapter can take minutes."""


def own_servers(
    config: PolicyConfig,
    agent: AgentConfig,
    on_status: Status,
    serve: SharedServers | None,
) -> Prepared:
    """Make all checks that need no running server, and return the policy that starts the servers."""
    resolved = resolve_model(config, on_status, tools=agent.chosen.kind.calls_tools)
    command = find_server(config.vllm)
    placed = place_replicas(
        config.replicas, command, resolved.planned.extra, deterministic=config.deterministic
    )

    @asynccontextmanager
    async def open_policy(folder: Path, reports: Reports) -> AsyncIterator[Opened]:
        what = await asyncio.to_thread(resolved.make, reports.status)
        name = what.adapter_name or what.served_name
        servers: list[ModelServer] = [
            (partial(serve, ManagedServer) if serve else ManagedServer)(
                model=what.model,
                served_name=what.served_name,
                log_path=folder / ("server.log" if index == 0 else f"server-{index + 1}.log"),
                extra_args=what.extra,
                on_status=reports.status if index == 0 else None,
                command=command,
                variables={**variables, **what.variables},
            )
            for index, variables in enumerate(placed)
        ]
        if what.adapter is not None:
            servers = [WithAdapter(server, name, what.adapter) for server in servers]
        async with AsyncExitStack() as stack:
            for server in servers:
                stack.push_async_callback(server.stop)
            await asyncio.gather(*(server.start() for server in servers))
            replicas = [
                Replica(
                    "vLLM" if len(servers) == 1 else f"vLLM {index + 1}",
                    make_client(config, server.base_url, name, None, reports, agent),
                    server,
                )
                for index, server in enumerate(servers)
            ]
            group = await stack.enter_async_context(connect(replicas, reports))
            facts = dict(group.facts or {})
            facts |= {"vllm": servers[0].version, "argv": servers[0].argv, "replicas": len(servers)}
            if config.deterministic:
                facts["batch_invariant"] = True
            if len(servers) > 1:
                facts["placement"] = placed
            yield replace(group, facts=facts)

    return Prepared(resolved.identity, open_policy, partial(_command_line, config, command, resolved))


def resolve_model(config: PolicyConfig, on_status: Status, *, tools: bool = False) -> ResolvedModel:
    """Return the model that `--model` names. Raises UserError if a vLLM cannot serve it."""
    extra, identity = extra_arguments(config, tools=tools)
    adapted = config.lora is not None or config.model == DEMO or is_adapter(config.model)
    if config.lora_serve and not adapted:
        raise UserError("--lora-serve needs an adapter: --lora DIR")
    return (_with_adapter if adapted else _whole)(config, extra, identity, on_status)


def _whole(
    config: PolicyConfig, extra: list[str], identity: dict[str, Any], on_status: Status
) -> ResolvedModel:
    """Resolve a `--model` that is a whole checkpoint or a hub id."""
    model = config.model
    if model == DEMO_BASE or is_local(model):
        checkpoint = check_checkpoint(ensure_demo(on_status) if model == DEMO_BASE else model)
        on_status("hashing the checkpoint")
        model = str(checkpoint.path)
        identity |= {"architecture": checkpoint.architecture, "checkpoint_sha256": checkpoint.identity}
    elif re.fullmatch(r"[\w.-]+/[\w.-]+", model):
        identity["hub_id"] = model
    else:
        raise UserError(
            f"--model {config.model}: no such directory"
            + (f" (did you mean {close!r}?)" if (close := close_to(config.model, _NAMED)) else "")
            + "; give a checkpoint directory, a hub id such as org/name, "
            + f"{', '.join(_NAMED)}, replay:RUN, or http://host:port/v1"
            + openai_hint(config.model)
        )
    planned = ToServe(model, config.display_name, extra)
    return ResolvedModel(identity, planned, lambda on_status: planned)


def _with_adapter(
    config: PolicyConfig, extra: list[str], identity: dict[str, Any], on_status: Status
) -> ResolvedModel:
    """Resolve a `--model` with a LoRA adapter: merge it into its base, or load it on a server of the base."""
    adapter = check_adapter(config.lora or (DEMO_ADAPTER if config.model == DEMO else config.model))
    base = check_checkpoint(_base(config, adapter, on_status))
    check_fits(adapter, base)
    if config.lora_serve:
        require_servable(adapter, base)
    on_status("hashing the checkpoint")
    identity |= {
        "architecture": base.architecture,
        "checkpoint_sha256": base.identity,
        "lora_sha256": adapter.identity,
        "lora_rank": adapter.rank,
    }

    def merge(on_status: Status) -> ToServe:
        merged = ensure_merged(base, adapter, on_status, config.vllm)
        return ToServe(str(merged), config.display_name, extra)

    def keep(on_status: Status) -> ToServe:
        # The server's arguments do not name the adapter, so that one server can serve other adapters, too.
        own = [*extra, "--enable-lora", "--max-lora-rank", str(adapter.max_rank)]
        name = adapter_name(adapter.identity)
        return ToServe(str(base.path), base.path.name, own, name, adapter.path, VARIABLES)

    if config.lora_serve:
        return ResolvedModel(identity, keep(on_status), keep)
    return ResolvedModel(
        identity, ToServe(str(choose_merged_folder(base, adapter)), config.display_name, extra), merge
    )


def _base(config: PolicyConfig, adapter: Adapter, on_status: Status) -> Path:
    if config.model == DEMO_BASE or (config.lora is None and adapter.base == DEMO_BASE):
        return ensure_demo(on_status)
    if config.lora is None:
        return find_base(adapter)
    if is_demo(config.model):
        raise UserError(
            "--model demo is demo-base with an adapter already; for your own adapter: --model demo-base --lora "
            f"{config.lora}"
        )
    if is_local(config.model):
        return Path(config.model)
    if (snapshot := find_cached_snapshot(config.model)) is None:
        raise UserError(
            f"--model {config.model}: an adapter's base must be on this machine, as a folder or in the hub's cache "
            f"(hf download {config.model})"
        )
    return snapshot


def _command_line(config: PolicyConfig, command: ServerCommand, what: ResolvedModel) -> str:
    """Return the command line of the vLLM that would be started, with PORT for its port."""
    argv = server_arguments(
        command,
        model=what.planned.model,
        served_name=what.planned.served_name,
        port=0,
        max_model_len=default_context(what.planned.model),
        extra=what.planned.extra,
    )
    line = shlex.join(argv).replace(" --port 0 ", " --port PORT ")
    return line + (f"  ({config.replicas} of them)" if config.replicas > 1 else "")
