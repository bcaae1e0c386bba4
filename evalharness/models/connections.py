"""The client of a server, as the configuration describes it."""

from __future__ import annotations

from typing import Any

from evalharness.config import AgentConfig, PolicyConfig
from evalharness.models.base import RequestForm
from evalharness.models.endpoint import TURN_FORM, ChatEndpoint
from evalharness.models.opened import Reports
from evalharness.models.sampling import Sampling
from evalharness.models.served import ServedModel

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
