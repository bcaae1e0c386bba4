"""`--model`: from what the user named to a policy that answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.base import EnvSpec
from evalharness.config import RunConfig
from evalharness.errors import UserError
from evalharness.policy.api_key import read_key
from evalharness.policy.base import Policy
from evalharness.policy.connections import client_of, examine_template, how_asked, metrics_of, told_of
from evalharness.policy.endpoint import START_PATIENCE
from evalharness.policy.event_loop import run_to_end
from evalharness.policy.opened import Opened, Prepared, Reports, Status
from evalharness.policy.own_servers import own_servers
from evalharness.policy.replicas import Replica, Replicas
from evalharness.policy.scripted import OraclePolicy, RandomPolicy, ReferencePolicy, ReplayPolicy
from evalharness.policy.served import ServedModel, describe, one_model

if TYPE_CHECKING:
    from evalharness.server.shared import SharedServers


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
    return own_servers(config, on_status, serve)


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
        clients = [client_of(config, url, name, key, reports, expected) for url, expected in served.items()]
        replicas = [Replica(client.base_url, client) for client in clients]
        group = Replicas(replicas, on_status=reports.status, on_event=reports.event)
        try:
            await asyncio.gather(*(client.start() for client in clients))
            template = await examine_template(config, clients, reports)
            facts = {"requests": how_asked(clients), **told_of(template)}
            yield Opened(
                group, failure=group.failure, facts=facts, metrics=metrics_of(group), template=template
            )
        finally:
            await group.close()

    return Prepared(identity, opened, lambda: ", ".join(f"{url} asked for {name}" for url in served))
