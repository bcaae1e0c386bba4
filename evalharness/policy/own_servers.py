"""A vLLM of our own for a model, or several, on this machine or on nodes of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.config import RunConfig
from evalharness.errors import UserError
from evalharness.machine import core_numbers
from evalharness.policy.adapted import ToServe, adapted
from evalharness.policy.connections import client_of, examine_template, how_asked, metrics_of, told_of
from evalharness.policy.opened import Opened, Prepared, Reports, Status
from evalharness.policy.replicas import Replica, Replicas
from evalharness.policy.what_to_serve import (
    ToLoad,
    command_line,
    has_adapter,
    kept_server,
    vllm_arguments,
    whole_model,
)

if TYPE_CHECKING:
    from evalharness.server.interface import ModelServer
    from evalharness.server.kept import Kept
    from evalharness.server.shared import SharedServers


def own_servers(config: RunConfig, on_status: Status, serve: SharedServers | None) -> Prepared:
    """A vLLM of our own: everything that can be checked is checked before it is started."""
    if has_adapter(config):
        extra, identity = vllm_arguments(config)
        servers_of = _on_nodes(config, extra) if config.cluster else _on_this_machine(config, extra)
        adapter, to_serve, planned = adapted(config, extra, on_status)
        what = ToLoad(planned.model, identity | adapter, list(planned.extra))
        opening = _opening(config, serve, servers_of, to_serve, partial(kept_server, config, what))
        return Prepared(identity | adapter, opening, partial(command_line, config, what, planned.served_name))
    if config.lora_serve:
        raise UserError("--lora-serve needs an adapter: --lora DIR")
    what = whole_model(config, on_status)
    servers_of = _on_nodes(config, what.extra) if config.cluster else _on_this_machine(config, what.extra)
    return Prepared(
        what.identity,
        _opening(
            config,
            serve,
            servers_of,
            lambda on_status: ToServe(what.model, config.display_name, what.extra),
            partial(kept_server, config, what),
        ),
        partial(command_line, config, what),
    )


def _opening(
    config: RunConfig,
    serve: SharedServers | None,
    servers_of: _ServersOf,
    to_serve: Callable[[Status], ToServe],
    kept: Callable[[], Kept | None] = lambda: None,
) -> Callable[[Path, Reports], AbstractAsyncContextManager[Opened]]:
    """`to_serve` may take minutes. `kept`: a server that is there already."""

    @asynccontextmanager
    async def opened(folder: Path, reports: Reports) -> AsyncIterator[Opened]:
        from evalharness.server.kept import KeptServer
        from evalharness.server.with_adapter import WithAdapter

        what, there = await asyncio.to_thread(to_serve, reports.status), kept()
        name = what.adapter_name or what.served_name
        if there is not None:
            name = there.served_name
            reports.event(f"uses the kept vLLM of {there.model} (its log: {there.log})")
        make, placed = servers_of()
        if what.variables:
            placed = [{**own, "variables": {**own["variables"], **what.variables}} for own in placed]
        servers: list[ModelServer] = (
            [KeptServer(there)]
            if there is not None
            else [
                (partial(serve, make) if serve else make)(
                    model=what.model,
                    served_name=what.served_name,
                    log_path=folder / ("server.log" if index == 0 else f"server-{index + 1}.log"),
                    extra_args=what.extra,
                    on_status=reports.status if index == 0 else None,
                    **own,
                )
                for index, own in enumerate(placed)
            ]
        )
        if what.adapter is not None:
            servers = [WithAdapter(server, name, what.adapter) for server in servers]
        async with AsyncExitStack() as stack:
            for server in servers:
                stack.push_async_callback(server.stop)
            await asyncio.gather(*(server.start() for server in servers))
            replicas = [
                Replica(
                    "vLLM" if len(servers) == 1 else f"vLLM {index + 1}",
                    client_of(config, server.base_url, name, server.api_key, reports),
                    server,
                )
                for index, server in enumerate(servers)
            ]
            group = Replicas(replicas, on_status=reports.status, on_event=reports.event)
            stack.push_async_callback(group.close)
            await asyncio.gather(*(replica.endpoint.start() for replica in replicas))
            clients = [replica.endpoint for replica in replicas]
            template = await examine_template(config, clients, reports)
            facts: dict[str, Any] = {
                "vllm": servers[0].version,
                "argv": servers[0].argv,
                "replicas": len(servers),
                "requests": how_asked(clients),
                **told_of(template),
            }
            if config.deterministic:
                facts["batch_invariant"] = True
            if config.cluster:
                facts["servers"] = [server.base_url for server in servers]
            elif len(servers) > 1:
                facts["placement"] = [own["variables"] for own in placed]
            yield Opened(
                group,
                group.failure,
                facts=facts,
                metrics=metrics_of(group),
                down_s=lambda: group.down_s,
                template=template,
            )

    return opened


_ServersOf = Callable[[], tuple[Callable[..., "ModelServer"], Sequence[Mapping[str, Any]]]]
"""Returns how a server is made, and with what each replica."""


def _on_this_machine(config: RunConfig, extra: Sequence[str]) -> _ServersOf:
    from evalharness.server.find import find_server
    from evalharness.server.invariance import batch_invariance, compute_capabilities
    from evalharness.server.managed import ManagedServer

    command = find_server(config.vllm)
    invariant = batch_invariance(command.kind, compute_capabilities()) if config.deterministic else {}
    placed = [
        {"command": command, "variables": variables | invariant}
        for variables in _placement(config, command.kind, extra)
    ]
    return lambda: (ManagedServer, placed)


def _on_nodes(config: RunConfig, extra: Sequence[str]) -> _ServersOf:
    """Each node has its own vLLM. Where there is room is only known once the cluster has been joined."""
    if config.deterministic:
        raise UserError(
            "--deterministic: whether a node's GPUs can do that is not known; leave out --cluster"
        )
    from evalharness.server.placement import gpus_of_one

    def servers_of() -> tuple[Callable[..., ModelServer], Sequence[Mapping[str, Any]]]:
        from evalharness.cluster.ray_server import RayServer
        from evalharness.cluster.server_resources import resources_of

        return RayServer, [
            {"resources": resources, "vllm": config.vllm}
            for resources in resources_of(config.replicas, gpus_of_one(extra))
        ]

    return servers_of


def _placement(config: RunConfig, kind: str, extra: Sequence[str]) -> list[dict[str, str]]:
    """Environment variables of each replica."""
    from evalharness.server.placement import gpus_of_one, place_on_cores, place_on_gpus, visible_gpus

    if kind == "cpu":
        return place_on_cores(config.replicas, core_numbers())
    gpus = visible_gpus() if config.replicas > 1 else []
    return place_on_gpus(config.replicas, gpus_of_one(extra), gpus)
