"""`--model`: from what the user named to a policy that answers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.base import EnvSpec
from evalharness.config import RunConfig
from evalharness.errors import UserError
from evalharness.policy.adapted import ToServe, adapted
from evalharness.policy.api_key import read_key
from evalharness.policy.base import Policy
from evalharness.policy.endpoint import START_PATIENCE, ChatEndpoint
from evalharness.policy.event_loop import run_to_end
from evalharness.policy.replicas import Replica, Replicas
from evalharness.policy.sampling import Sampling
from evalharness.policy.scripted import OraclePolicy, RandomPolicy, ReferencePolicy, ReplayPolicy
from evalharness.policy.served import ServedModel, describe, one_model
from evalharness.policy.template import Template
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

Status = Callable[[str], None]
_CONNECTIONS = 1024
"""Of one client at most: above any concurrency that is worth having."""


@dataclass(frozen=True)
class Reports:
    """Who hears what happens while a policy works."""

    status: Status = lambda text: None
    """One line on what goes on."""
    event: Status = lambda text: None
    """A server died, came back, was given up: to be kept."""
    overload: Callable[[], None] = lambda: None
    """A request was refused with 429 or 503."""
    retry: Callable[[], None] = lambda: None
    """A request that failed is asked again."""


@dataclass(frozen=True)
class Opened:
    """A policy at work."""

    policy: Policy
    failure: Callable[[], str | None] = lambda: None
    """Why the policy can never answer again; None while it can."""
    facts: Mapping[str, Any] | None = None
    """What is only known once it runs: the server's version and arguments."""
    metrics: Callable[[], Sequence[str]] = lambda: ()
    """Where the servers that are up now tell how busy they are."""
    down_s: Callable[[], float] = lambda: 0.0
    """Seconds without a server so far, while it was started again."""
    template: Template | None = None
    """What the chat template does with a growing conversation; None where that cannot be seen."""


@dataclass(frozen=True)
class Prepared:
    """All that could be checked about a policy before anything is started or written."""

    identity: Mapping[str, Any]
    """Tells models apart in the manifest; never holds a key."""
    open: Callable[[Path, Reports], AbstractAsyncContextManager[Opened]]
    """(run folder, who hears what happens) -> the policy, started."""

    server: Callable[[], str] = lambda: ""
    """Who is asked, or the command line of the vLLM that would be started; for people."""

    @property
    def address(self) -> str | None:
        """The endpoint's URL, where its server does not say which model it serves: then nothing else tells two models
        of one name apart. None everywhere else."""
        return self.identity.get("url")


def sampling_of(config: RunConfig) -> Sampling:
    return Sampling(**config.sampling_fields(), max_tokens=config.max_tokens, seed=config.seed)


def prepare(
    config: RunConfig, specs: Mapping[str, EnvSpec], on_status: Status, *, serve: SharedServers | None = None
) -> Prepared:
    """Find out what `config.model` means. Raises UserError for what can be seen to be wrong beforehand.

    `serve` gives the model's servers, where some are needed; without it the run gets servers of its own.
    """
    if config.is_scripted:
        return _scripted(config, specs)
    if config.is_endpoint:
        return _endpoint(config, on_status)
    return _managed(config, on_status, serve)


def _scripted(config: RunConfig, specs: Mapping[str, EnvSpec]) -> Prepared:
    policy: Policy
    identity: dict[str, Any] = {"kind": "scripted", "name": config.model}
    if config.model == "oracle":
        policy = OraclePolicy()
    elif config.model == "reference":
        policy = ReferencePolicy()
    elif config.model == "random":
        help_actions = {f: spec.actions[spec.help_action] for f, spec in specs.items() if spec.help_action}
        policy = RandomPolicy(config.seed, help_actions)
    else:
        from evalharness.records.store import read_episodes, read_manifest

        source = Path(config.model.removeprefix("replay:"))
        recorded = read_manifest(source)
        if recorded["identity"]["config"].get("action_interface") == "tools":
            raise UserError(f"{source} acts by tool calls, which cannot be replayed")
        identity["digest"] = recorded["digest"]
        policy = ReplayPolicy(
            {(e.task_id, e.sample): tuple(turn.reply for turn in e.turns) for e in read_episodes(source)}
        )

    @asynccontextmanager
    async def opened(folder: Path, reports: Reports) -> AsyncIterator[Opened]:
        yield Opened(policy)

    return Prepared(identity, opened)


def _client(
    config: RunConfig,
    url: str,
    name: str,
    key: str | None,
    reports: Reports,
    expected: ServedModel | None = None,
) -> ChatEndpoint:
    return ChatEndpoint(
        url,
        name,
        sampling=sampling_of(config),
        api_key=key,
        connections=config.concurrency or _CONNECTIONS,
        timeout=config.timeout,
        # With another server to go to, waiting for this one to come back is not worth as much.
        tries=6 if len(config.endpoints) < 2 else 3,
        expected=expected,
        template_kwargs=config.template_kwargs,
        extra_fields=config.extra_fields,
        session_header=config.session_header,
        record_tokens=config.record_tokens,
        tools=config.acts_by_tools,
        on_status=reports.status,
        on_overload=reports.overload,
        on_retry=reports.retry,
    )


def _how_asked(clients: Sequence[ChatEndpoint]) -> list[dict[str, Any]]:
    """How the servers are asked, each way once."""
    ways: list[dict[str, Any]] = []
    for client in clients:
        if (way := client.facts()) not in ways:
            ways.append(way)
    return ways


async def _examine_template(
    config: RunConfig, clients: Sequence[ChatEndpoint], reports: Reports
) -> Template | None:
    """Of one server: all serve the same model."""
    first, *others = clients
    template = await first.examine_template(keep_thinking=config.history_thinking == "keep")
    for client in others:
        client.template = template
    if template is not None and (notice := template.notice()) is not None:
        reports.event(notice)
    return template


def _told_of(template: Template | None) -> dict[str, Any]:
    return {"template": template.to_json() if template else None}


def _metrics_of(group: Replicas) -> Callable[[], Sequence[str]]:
    from evalharness.server.metrics import metrics_url

    return lambda: [metrics_url(replica.endpoint.base_url) for replica in group.replicas if replica.up]


async def _ask_servers(
    config: RunConfig, name: str, key: str | None, on_status: Status
) -> Mapping[str, ServedModel | None]:
    """What each endpoint says of the model, by URL."""
    import aiohttp

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    patience = min(START_PATIENCE, config.timeout)
    urls = [url.rstrip("/") for url in config.endpoints]
    async with aiohttp.ClientSession(headers=headers) as http:
        asked = (describe(http, url, name, patience_s=patience, on_status=on_status) for url in urls)
        return dict(zip(urls, await asyncio.gather(*asked), strict=True))


def _endpoint(config: RunConfig, on_status: Status) -> Prepared:
    if config.model_name is None:
        raise UserError("an endpoint needs --model-name NAME, the name it serves the model by")
    key = read_key("--api-key-env", config.api_key_env)
    name = config.model_name
    # First of all, also for a run that is finished: its scores are those of the model that was served then.
    served = run_to_end(_ask_servers(config, name, key, on_status))
    model = one_model(served)
    identity: dict[str, Any] = {"kind": "endpoint", "name": name}
    if model is not None:
        identity["served"] = model.to_json()
    if model is None or not model.is_told:
        identity["url"] = next(iter(served))

    @asynccontextmanager
    async def opened(folder: Path, reports: Reports) -> AsyncIterator[Opened]:
        clients = [_client(config, url, name, key, reports, expected) for url, expected in served.items()]
        replicas = [Replica(client.base_url, client) for client in clients]
        group = Replicas(replicas, on_status=reports.status, on_event=reports.event)
        try:
            await asyncio.gather(*(client.start() for client in clients))
            template = await _examine_template(config, clients, reports)
            facts = {"requests": _how_asked(clients), **_told_of(template)}
            yield Opened(
                group, failure=group.failure, facts=facts, metrics=_metrics_of(group), template=template
            )
        finally:
            await group.close()

    return Prepared(identity, opened, lambda: ", ".join(f"{url} asked for {name}" for url in served))


def _managed(config: RunConfig, on_status: Status, serve: SharedServers | None) -> Prepared:
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
                    _client(config, server.base_url, name, server.api_key, reports),
                    server,
                )
                for index, server in enumerate(servers)
            ]
            group = Replicas(replicas, on_status=reports.status, on_event=reports.event)
            stack.push_async_callback(group.close)
            await asyncio.gather(*(replica.endpoint.start() for replica in replicas))
            clients = [replica.endpoint for replica in replicas]
            template = await _examine_template(config, clients, reports)
            facts: dict[str, Any] = {
                "vllm": servers[0].version,
                "argv": servers[0].argv,
                "replicas": len(servers),
                "requests": _how_asked(clients),
                **_told_of(template),
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
                metrics=_metrics_of(group),
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
        cores = (
            sorted(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else range(os.cpu_count() or 1)
        )
        return place_on_cores(config.replicas, list(cores))
    gpus = visible_gpus() if config.replicas > 1 else []
    return place_on_gpus(config.replicas, gpus_of_one(extra), gpus)
