"""Check a server that starts: is it up, does it answer a request, how long is its context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalharness.models.server_error import ServerError

if TYPE_CHECKING:
    from aiohttp import ClientSession


async def is_healthy(http: ClientSession, base_url: str) -> bool:
    """Return whether /health answers; it can answer before the model works."""
    import aiohttp

    try:
        async with http.get(base_url.removesuffix("/v1") + "/health") as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


async def is_up(base_url: str, within: float) -> bool:
    """Return whether /health answers on a new connection within `within` seconds."""
    import aiohttp

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=within)) as http:
        return await is_healthy(http, base_url)


async def first_request(http: ClientSession, base_url: str, model: str, limit: float) -> str | None:
    """Send one chat request and wait up to `limit` seconds; return None if it was answered, otherwise the problem."""
    import aiohttp

    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Say yes."}],
        "max_tokens": 2,
        "temperature": 0,
    }
    try:
        async with http.post(
            f"{base_url}/chat/completions", json=body, timeout=aiohttp.ClientTimeout(total=limit)
        ) as response:
            if response.status == 200:
                return None
            why = ServerError.of(response.status, await response.read()).message
            return f"vLLM refused the first chat request (HTTP {response.status}): {why}"
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return f"vLLM did not answer the first chat request ({type(error).__name__})"


async def context_length(http: ClientSession, base_url: str) -> int:
    """Return the context length in tokens, from /v1/models."""
    async with http.get(f"{base_url}/models") as response:
        models = await response.json()
    return int(models["data"][0]["max_model_len"])
