"""The name of the one model that an endpoint serves, where the user gives none."""

from __future__ import annotations

from evalharness.base.errors import UserError
from evalharness.config import PolicyConfig
from evalharness.models.api_key import read_key
from evalharness.models.event_loop import run_to_end
from evalharness.models.served import names_served


def with_served_name(policy: PolicyConfig) -> PolicyConfig:
    """With `model_name`, where the model is an endpoint. Raises UserError where that serves several models, or does not
    say which."""
    if not policy.is_endpoint or policy.model_name is not None:
        return policy
    key = read_key("--api-key-env", policy.api_key_env)
    names = run_to_end(_names(policy.endpoints[0].rstrip("/"), key, policy.timeout))
    if len(names) != 1:
        serves = (
            f"{policy.model} serves {len(names)} models: {', '.join(names[:8])}{', ...' * (len(names) > 8)}"
        )
        raise UserError(
            f"{serves if names else f'{policy.model} does not say which models it serves'}; an endpoint needs "
            "--model-name NAME, the name it serves the model by"
        )
    return policy.model_copy(update={"model_name": names[0]})


async def _names(url: str, key: str | None, timeout: float) -> list[str]:
    from evalharness.models.transport import Transport

    transport = Transport(key, connections=1, timeout=timeout)
    try:
        return await names_served(transport, url)
    finally:
        await transport.close()
