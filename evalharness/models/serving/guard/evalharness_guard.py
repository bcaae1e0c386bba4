"""Lets a vLLM that other machines can reach answer nobody without its key.

vLLM's own check of `VLLM_API_KEY` leaves out `/invocations`, which answers like `/v1`, and all else outside a few
prefixes (0.32). vLLM imports this into its own environment (`--middleware`), so it needs the standard library alone
and lies in a folder by itself.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Awaitable, Callable
from typing import Any

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Scope], Awaitable[None]]

OPEN = ("/health", "/metrics")
"""What tells of the server's state alone, and is asked without a key."""


class RequireKey:
    """An ASGI application in front of vLLM's."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app
        self._wanted = f"Bearer {os.environ['VLLM_API_KEY']}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or self._may(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"this server needs its key\n"})

    def _may(self, scope: Scope) -> bool:
        if scope.get("method") == "GET" and scope["path"] in OPEN:
            return True
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        return hmac.compare_digest(given, self._wanted)
