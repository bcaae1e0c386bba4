"""`--model`: from what the user named to a policy that answers."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.base import EnvSpec
from evalharness.config import SCRIPTED, RunConfig
from evalharness.errors import UserError
from evalharness.policy.base import Policy
from evalharness.policy.endpoint import ChatEndpoint, Sampling
from evalharness.policy.scripted import OraclePolicy, RandomPolicy, ReferencePolicy, ReplayPolicy

Status = Callable[[str], None]


@dataclass(frozen=True)
class Opened:
    """A policy at work."""

    policy: Policy
    failure: Callable[[], str | None] = lambda: None
    """Why the policy can never answer again; None while it can."""
    facts: Mapping[str, Any] | None = None
    """What is only known once it runs: the server's version and arguments."""


@dataclass(frozen=True)
class Prepared:
    """All that could be checked about a policy before anything is started or written."""

    identity: Mapping[str, Any]
    """Tells models apart in the manifest; never holds a key."""
    open: Callable[[Path, Status], AbstractAsyncContextManager[Opened]]
    """(run folder, status line) -> the policy, started."""


def sampling_of(config: RunConfig) -> Sampling:
    return Sampling(config.temperature, config.top_p, config.max_tokens, config.seed)


def prepare(config: RunConfig, specs: Mapping[str, EnvSpec], on_status: Status) -> Prepared:
    """Find out what `config.model` means. Raises UserError for what can be seen to be wrong beforehand."""
    if config.model in SCRIPTED or config.model.startswith("replay:"):
        return _scripted(config, specs)
    if config.is_endpoint:
        return _endpoint(config)
    return _managed(config, on_status)


def _scripted(config: RunConfig, specs: Mapping[str, EnvSpec]) -> Prepared:
    policy: Policy
    identity: dict[str, Any] = {"kind": "scripted", "name": config.model}
    if config.model == "oracle":
        policy = OraclePolicy()
    elif config.model == "reference":
        policy = ReferencePolicy()
    elif config.model == "random":
        policy = RandomPolicy(config.seed, {family: spec.actions for family, spec in specs.items()})
    else:
        from evalharness.store import read_episodes, read_manifest

        source = Path(config.model.removeprefix("replay:"))
        identity["digest"] = read_manifest(source)["digest"]
        policy = ReplayPolicy(
            {(e.task_id, e.sample): tuple(turn.reply for turn in e.turns) for e in read_episodes(source)}
        )

    @asynccontextmanager
    async def opened(folder: Path, status: Status) -> AsyncIterator[Opened]:
        yield Opened(policy)

    return Prepared(identity, opened)


def _api_key(config: RunConfig) -> str | None:
    if config.api_key_env is None:
        return None
    key = os.environ.get(config.api_key_env)
    if not key:
        raise UserError(f"--api-key-env {config.api_key_env}: that environment variable is not set")
    return key


def _endpoint(config: RunConfig) -> Prepared:
    if config.model_name is None:
        raise UserError("an endpoint needs --model-name NAME, the name it serves the model by")
    key = _api_key(config)
    name = config.model_name

    @asynccontextmanager
    async def opened(folder: Path, status: Status) -> AsyncIterator[Opened]:
        endpoint = ChatEndpoint(
            config.model,
            name,
            sampling=sampling_of(config),
            api_key=key,
            connections=config.concurrency,
            timeout=config.timeout,
            on_retry=status,
        )
        try:
            await endpoint.start()
            yield Opened(endpoint)
        finally:
            await endpoint.close()

    return Prepared({"kind": "endpoint", "name": name}, opened)


def _managed(config: RunConfig, on_status: Status) -> Prepared:
    """A vLLM of our own: everything that can be checked is checked before it is started."""
    from evalharness.server.checkpoint import check_checkpoint, is_local
    from evalharness.server.demo import ensure_demo
    from evalharness.server.find import find_server
    from evalharness.server.managed import ManagedServer

    try:
        extra = shlex.split(config.vllm_args)
    except ValueError as error:
        raise UserError(f"--vllm-args cannot be split into words: {error}") from None
    identity: dict[str, Any] = {"kind": "vllm"}
    model = config.model
    hub_id = config.model != "demo" and not is_local(config.model)
    if hub_id and not re.fullmatch(r"[\w.-]+/[\w.-]+", config.model):
        raise UserError(
            f"--model {config.model}: no such directory; give a checkpoint directory, a hub id such as org/name, "
            "demo, oracle, random, replay:RUN, or http://host:port/v1"
        )
    checkpoint = None if hub_id or config.model == "demo" else check_checkpoint(config.model)
    command = find_server(config.vllm)
    if config.model == "demo":
        checkpoint = check_checkpoint(ensure_demo(on_status))
    if checkpoint is None:
        identity["hub_id"] = config.model
    else:
        on_status("hashing the checkpoint")
        model = str(checkpoint.path)
        identity |= {"architecture": checkpoint.architecture, "checkpoint_sha256": checkpoint.identity}
    name = config.display_name

    @asynccontextmanager
    async def opened(folder: Path, status: Status) -> AsyncIterator[Opened]:
        async with ManagedServer(
            command=command,
            model=model,
            served_name=name,
            log_path=folder / "server.log",
            extra_args=extra,
            on_status=status,
        ) as server:
            endpoint = ChatEndpoint(
                server.base_url,
                name,
                sampling=sampling_of(config),
                connections=config.concurrency,
                timeout=config.timeout,
                on_retry=status,
            )
            try:
                await endpoint.start()
                yield Opened(
                    endpoint, failure=server.failure, facts={"vllm": server.version, "argv": server.argv}
                )
            finally:
                await endpoint.close()

    return Prepared(identity, opened)
