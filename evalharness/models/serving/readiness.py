"""A server that starts: is it up, does it really answer, how long is its context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalharness.models.server_error import ServerError

if TYPE_CHECKING:
    from aiohttp import ClientSession


async def healthy(http: ClientSession, base_url: str) -> bool:
    """Whether /health answers; it does so before the first request has shown that the model runs."""
    import aiohttp

    try:
        async with http.get(base_url.removesuffix("/v1") + "/health") as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


async def is_up(base_url: str, within: float) -> bool:
    """`healthy`, on a connection of its own, in so many seconds."""
    import aiohttp

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=within)) as http:
        return await healthy(http, base_url)


async def first_request(http: ClientSession, base_url: str, model: str, limit: float) -> str | None:
    """One real chat request, waiting `limit` seconds: None when it was answered, else what came instead."""
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
    """Tokens of context, as /v1/models states it."""
    async with http.get(f"{base_url}/models") as response:
        models = await response.json()
    return int(models["data"][0]["max_model_len"])
