"""Make a policy from `--model`."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.agents.registry import DEFAULT
from evalharness.base.errors import UserError
from evalharness.base.extensions import find_hook
from evalharness.config import HUMAN, AgentConfig, PolicyConfig
from evalharness.config.outside import OutsideConfig
from evalharness.envs.base import EnvSpec
from evalharness.models.api_key import read_key
from evalharness.models.base import Policy, Reply
from evalharness.models.connections import make_client
from evalharness.models.endpoint import START_WAIT
from evalharness.models.event_loop import run_to_end
from evalharness.models.opened import Opened, Prepared, Reports, Status
from evalharness.models.own_servers import own_servers
from evalharness.models.replicas import Replica, connect
from evalharness.models.scripted import OraclePolicy, RandomPolicy, ReferencePolicy, ReplayPolicy
from evalharness.models.served import (
    NotListedError,
    ServedModel,
    UnreadableListError,
    describe,
    require_one,
)

if TYPE_CHECKING:
    from evalharness.agents.base import ModelReply
    from evalharness.models.serving.model_server import SharedServers

_DEFAULT_AGENT = AgentConfig()
_DEFAULT_OUTSIDE = OutsideConfig()


_LOG = logging.getLogger("evalharness")


def prepare(
    config: PolicyConfig,
    specs: Mapping[str, EnvSpec],
    on_status: Status,
    *,
    agent: AgentConfig = _DEFAULT_AGENT,
    outside: OutsideConfig = _DEFAULT_OUTSIDE,
    serve: SharedServers | None = None,
    person: Policy | None = None,
) -> Prepared:
    """Make the policy that `config.model` names. Raises UserError for errors that are visible before the start.

    `agent` determines the form of requests; `outside` configures an external agent. `serve` returns servers that
    several runs share; without `serve`, the run starts its own. `person` is the policy for `human:NAME`.
    """
    if config.is_external:
        if (prepare_outside := find_hook("outside_agents")) is None:
            raise UserError("--agent external: external agents are not installed")
        prepared: Prepared = prepare_outside(config.model, outside)
        return prepared
    if config.is_scripted:
        return _prepare_script(config, specs, person)
    if config.is_endpoint:
        return _prepare_endpoint(config, agent, on_status)
    return own_servers(config, agent, on_status, serve)


def _prepare_script(config: PolicyConfig, specs: Mapping[str, EnvSpec], person: Policy | None) -> Prepared:
    policy: Policy
    identity: dict[str, Any] = {"kind": "scripted", "name": config.model}
    if config.model == "oracle":
        policy = OraclePolicy()
    elif config.model == "reference":
        policy = ReferencePolicy()
    elif config.model == "random":
        policy = RandomPolicy(config.seed, {family: spec.actions for family, spec in specs.items()})
    elif config.model.startswith(HUMAN):
        if person is None:
            raise UserError(
                f"{config.model}: a person can play only a single run: evalharness run --model {config.model}"
            )
        policy = person
    else:
        from evalharness.records.rebuilt import reply_of
        from evalharness.records.store import read_episodes, read_manifest

        source = Path(config.model.removeprefix("replay:"))
        recorded = read_manifest(source)
        if recorded.config.agent_name != DEFAULT:
            raise UserError(
                f"{source} was played by the agent {recorded.config.agent_name}, which cannot be replayed"
            )
        replies = {
            (e.task_id, e.sample): tuple(reply_of(turn) for turn in e.turns) for e in read_episodes(source)
        }
        identity["digest"] = recorded.digest
        texts = json.dumps(sorted((key, [r.text for r in each]) for key, each in replies.items())).encode()
        identity["replies_sha256"] = hashlib.sha256(texts).hexdigest()
        policy = ReplayPolicy({key: tuple(map(_repeat, each)) for key, each in replies.items()})

    return Prepared(identity, lambda folder, reports: nullcontext(Opened(policy)))


def _repeat(reply: ModelReply) -> Reply:
    return Reply(reply.text, reply.reasoning, "length" if reply.truncated else "stop", reply.stopped_by)


async def _ask_servers(
    config: PolicyConfig, name: str, key: str | None, on_status: Status
) -> Mapping[str, ServedModel | None]:
    """Map the URL of each endpoint to the model that the endpoint serves."""
    from evalharness.models.transport import Transport

    wait = min(START_WAIT, config.timeout)
    urls = [url.rstrip("/") for url in config.endpoints]

    async def ask(url: str) -> ServedModel | None:
        transport = Transport(url, key, connections=1, timeout=config.timeout, headers=config.headers)
        try:
            return await describe(transport, name, wait_s=wait, on_status=on_status)
        except (UnreadableListError, NotListedError) as error:
            _LOG.warning(f"{error}: the run cannot notice if this URL later serves another model")
            return None
        finally:
            await transport.close()

    return dict(zip(urls, await asyncio.gather(*map(ask, urls)), strict=True))


def _prepare_endpoint(config: PolicyConfig, agent: AgentConfig, on_status: Status) -> Prepared:
    if config.model_name is None:
        raise UserError("an endpoint needs --model-name NAME, the name by which it serves the model")
    key = read_key("--api-key-env", config.api_key_env)
    name = config.model_name
    # Ask the server first, even if the run is already finished: its scores belong to the model that was served then.
    served = run_to_end(_ask_servers(config, name, key, on_status))
    model = require_one(served)
    identity: dict[str, Any] = {"kind": "endpoint", "name": name}
    if model is not None:
        identity["served"] = model.to_json()
    if model is None or not model.has_facts:
        identity["url"] = next(iter(served))

    def open_policy(folder: Path, reports: Reports) -> AbstractAsyncContextManager[Opened]:
        clients = [
            make_client(config, url, name, key, reports, agent, expected) for url, expected in served.items()
        ]
        return connect([Replica(client.base_url, client) for client in clients], reports)

    return Prepared(identity, open_policy, lambda: ", ".join(f"{url} asked for {name}" for url in served))
