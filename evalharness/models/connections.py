"""Make the client of a server from the configuration."""

from __future__ import annotations

from typing import Any

from evalharness.config import AgentConfig, PolicyConfig
from evalharness.models.base import RequestForm
from evalharness.models.endpoint import CONNECTIONS, TURN_FORM, ChatEndpoint
from evalharness.models.opened import Reports
from evalharness.models.sampling import Sampling
from evalharness.models.served import ServedModel


def sampling_from(config: PolicyConfig) -> Sampling:
    return Sampling(**config.sampling_fields(), max_tokens=config.max_tokens, seed=config.seed)


def sampling_identity(config: PolicyConfig) -> dict[str, Any]:
    """Return the sampling fields for the manifest of a folder of answers."""
    sampling = sampling_from(config)
    return {name: getattr(sampling, name) for name in ("temperature", "top_p", "max_tokens", "seed")}


def make_client(
    config: PolicyConfig,
    url: str,
    name: str,
    key: str | None,
    reports: Reports,
    agent: AgentConfig,
    expected: ServedModel | None = None,
) -> ChatEndpoint:
    sampling = sampling_from(config)
    return ChatEndpoint(
        url,
        name,
        sampling=sampling,
        api_key=key,
        connections=config.concurrency or CONNECTIONS,
        timeout=config.timeout,
        # With several servers, give up earlier: another server can answer the request.
        tries=6 if len(config.endpoints) < 2 else 3,
        expected=expected,
        template_kwargs=config.template_kwargs,
        extra_fields=config.extra_fields,
        headers=config.headers,
        session_header=config.session_header,
        # `start` sends a test request, which must have the same fields as the agent's later requests.
        turn_form=RequestForm(tools=True) if agent.chosen.kind.calls_tools else TURN_FORM,
        reports=reports,
    )
