"""The clients of the servers of one model, as a configuration says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from evalharness.base.errors import UserError
from evalharness.config import AgentConfig, PolicyConfig
from evalharness.models.base import RequestForm
from evalharness.models.endpoint import TURN_FORM, ChatEndpoint
from evalharness.models.opened import Opened, Reports
from evalharness.models.replicas import Replica, Replicas
from evalharness.models.sampling import Sampling
from evalharness.models.served import ServedModel
from evalharness.models.serving.metrics import metrics_url
from evalharness.records.identity import ANSWERED_BY

_CONNECTIONS = 1024
"""Of one client at most: above any concurrency that is worth having."""


def sampling_of(config: PolicyConfig) -> Sampling:
    return Sampling(**config.sampling_fields(), max_tokens=config.max_tokens, seed=config.seed)


def sampling_identity(config: PolicyConfig) -> dict[str, Any]:
    """For the manifest of a folder of answers."""
    sampling = sampling_of(config)
    return {name: getattr(sampling, name) for name in ("temperature", "top_p", "max_tokens", "seed")}


def client_of(
    config: PolicyConfig,
    url: str,
    name: str,
    key: str | None,
    reports: Reports,
    agent: AgentConfig,
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
        headers=config.headers,
        session_header=config.session_header,
        # How turns of such an agent are asked for, as far as servers must know it beforehand.
        turn_form=RequestForm(tools=True) if agent.chosen.kind.calls_tools else TURN_FORM,
        reports=reports,
    )


@asynccontextmanager
async def connected(replicas: Sequence[Replica], reports: Reports) -> AsyncIterator[Opened]:
    """The servers of one model asked as one."""
    group = Replicas(replicas, reports)
    clients = [replica.endpoint for replica in replicas]
    try:
        await asyncio.gather(*(client.start() for client in clients))
        ways: list[dict[str, Any]] = []
        """How the servers are asked, each way once."""
        for client in clients:
            if (way := client.facts()) not in ways:
                ways.append(way)
        facts: dict[str, Any] = {"requests": ways}
        # A server of our own is known by what it has loaded.
        if all(replica.server is None for replica in replicas):
            facts |= _sources(clients, reports)
        yield Opened(
            group,
            group.failure,
            facts=facts,
            metrics=lambda: [metrics_url(replica.endpoint.base_url) for replica in replicas if replica.up],
            down_s=lambda: group.down_s,
        )
    finally:
        await group.close()


def _sources(clients: Sequence[ChatEndpoint], reports: Reports) -> dict[str, Any]:
    """What the servers' first replies say. Raises UserError where they name several models or weights."""
    first, *others = [client.source or {} for client in clients]
    for client, other in zip(clients[1:], others, strict=True):
        for key, what in ((ANSWERED_BY, "models"), ("weight_version", "versions of the weights")):
            if other.get(key) != first.get(key):
                raise UserError(
                    f"the endpoints' replies name different {what}: {first.get(key)!r} at {clients[0].base_url}, "
                    f"{other.get(key)!r} at {client.base_url}; evaluate each in a run of its own"
                )
    if (name := first.get(ANSWERED_BY)) not in (None, clients[0].model):
        reports.event(f"asked for {clients[0].model!r}, the replies name the model {name!r}")
    prints = sorted({said for each in (first, *others) if (said := each.get("system_fingerprint"))})
    return dict(first) | ({"system_fingerprint": prints} if prints else {})
