"""`--model`: from what the user named to a policy that answers."""

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
from evalharness.models.connections import client_of
from evalharness.models.endpoint import START_WAIT
from evalharness.models.event_loop import run_to_end
from evalharness.models.opened import Opened, Prepared, Reports, Status
from evalharness.models.own_servers import own_servers
from evalharness.models.replicas import Replica, connect
from evalharness.models.scripted import OraclePolicy, RandomPolicy, ReferencePolicy, ReplayPolicy
from evalharness.models.served import NotListedError, ServedModel, UnreadableListError, describe, one_model

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
    """Find out what `config.model` means. Raises UserError for what can be seen to be wrong beforehand.

    `agent` says how it is talked to, `outside` how an agent from outside is asked.

    `serve` gives the model's servers, where some are needed; without it the run gets servers of its own. `person`
    answers where the model is `human:NAME`.
    """
    if config.is_external:
        if (prepare_outside := find_hook("outside_agents")) is None:
            raise UserError("--agent external: agents from outside are not installed")
        prepared: Prepared = prepare_outside(config.model, outside)
        return prepared
    if config.is_scripted:
        return _scripted(config, specs, person)
    if config.is_endpoint:
        return _endpoint(config, agent, on_status)
    return own_servers(config, agent, on_status, serve)


def _scripted(config: PolicyConfig, specs: Mapping[str, EnvSpec], person: Policy | None) -> Prepared:
    policy: Policy
    identity: dict[str, Any] = {"kind": "scripted", "name": config.model}
    if config.model == "oracle":
        policy = OraclePolicy()
    elif config.model == "reference":
        policy = ReferencePolicy()
    elif config.model == "random":
        help_actions = {f: spec.actions.help for f, spec in specs.items() if spec.actions.help}
        policy = RandomPolicy(config.seed, help_actions)
    elif config.model.startswith(HUMAN):
        if person is None:
            raise UserError(f"a person plays one run: evalharness run --model {config.model}")
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
        said = {
            (e.task_id, e.sample): tuple(reply_of(turn) for turn in e.turns) for e in read_episodes(source)
        }
        identity["digest"] = recorded.digest
        texts = json.dumps(sorted((key, [one.text for one in each]) for key, each in said.items())).encode()
        identity["replies_sha256"] = hashlib.sha256(texts).hexdigest()
        policy = ReplayPolicy({key: tuple(map(_again, each)) for key, each in said.items()})

    return Prepared(identity, lambda folder, reports: nullcontext(Opened(policy)))


def _again(said: ModelReply) -> Reply:
    return Reply(said.text, said.reasoning, "length" if said.truncated else "stop", said.stopped_by)


async def _ask_servers(
    config: PolicyConfig, name: str, key: str | None, on_status: Status
) -> Mapping[str, ServedModel | None]:
    """What each endpoint says of the model, by URL."""
    from evalharness.models.transport import Transport

    wait = min(START_WAIT, config.timeout)
    urls = [url.rstrip("/") for url in config.endpoints]

    async def ask(url: str) -> ServedModel | None:
        transport = Transport(url, key, connections=1, timeout=config.timeout, headers=config.headers)
        try:
            return await describe(transport, name, wait_s=wait, on_status=on_status)
        except (UnreadableListError, NotListedError) as error:
            _LOG.warning(f"{error}: only its URL tells this model from another one that is served there")
            return None
        finally:
            await transport.close()

    return dict(zip(urls, await asyncio.gather(*map(ask, urls)), strict=True))


def _endpoint(config: PolicyConfig, agent: AgentConfig, on_status: Status) -> Prepared:
    if config.model_name is None:
        raise UserError("an endpoint needs --model-name NAME, the name it serves the model by")
    key = read_key("--api-key-env", config.api_key_env)
    name = config.model_name
    # Ask the server before anything else, even if the run is already finished: its scores belong to the model
    # that was served then.
    served = run_to_end(_ask_servers(config, name, key, on_status))
    model = one_model(served)
    identity: dict[str, Any] = {"kind": "endpoint", "name": name}
    if model is not None:
        identity["served"] = model.to_json()
    if model is None or not model.is_told:
        identity["url"] = next(iter(served))

    def open_policy(folder: Path, reports: Reports) -> AbstractAsyncContextManager[Opened]:
        clients = [
            client_of(config, url, name, key, reports, agent, expected) for url, expected in served.items()
        ]
        return connect([Replica(client.base_url, client) for client in clients], reports)

    return Prepared(identity, open_policy, lambda: ", ".join(f"{url} asked for {name}" for url in served))
