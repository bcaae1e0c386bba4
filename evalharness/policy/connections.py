"""The clients of the servers of one model, as a configuration says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evalharness.config import RunConfig
from evalharness.policy.endpoint import ChatEndpoint
from evalharness.policy.opened import Reports
from evalharness.policy.replicas import Replicas
from evalharness.policy.sampling import Sampling
from evalharness.policy.served import ServedModel
from evalharness.policy.template import Template

_CONNECTIONS = 1024
"""Of one client at most: above any concurrency that is worth having."""


def sampling_of(config: RunConfig) -> Sampling:
    return Sampling(**config.sampling_fields(), max_tokens=config.max_tokens, seed=config.seed)


def client_of(
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


def how_asked(clients: Sequence[ChatEndpoint]) -> list[dict[str, Any]]:
    """How the servers are asked, each way once."""
    ways: list[dict[str, Any]] = []
    for client in clients:
        if (way := client.facts()) not in ways:
            ways.append(way)
    return ways


async def examine_template(
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


def told_of(template: Template | None) -> dict[str, Any]:
    return {"template": template.to_json() if template else None}


def metrics_of(group: Replicas) -> Callable[[], Sequence[str]]:
    from evalharness.server.metrics import metrics_url

    return lambda: [metrics_url(replica.endpoint.base_url) for replica in group.replicas if replica.up]
