"""Serve the WebSockets of all clients. Messages of one client are answered one after another."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from evalharness.rl.server.gate import Gate
from evalharness.rl.wire import MOST_BYTES, Refuse, RefusedError, to_refusal

PING_S = 600.0
"""Seconds between pings. A client that does not answer within half of this time counts as lost. This is long enough for
a client that is busy with a training step."""
_OVER = (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR)
Answer = Callable[[str], Awaitable[dict[str, Any] | None]]
"""The response to one message; None if the client closes its session."""


class Sockets:
    """The open WebSockets. Each one takes one of the sessions that the gate allows at the same time."""

    def __init__(self, gate: Gate, own: Refuse = lambda error: None) -> None:
        self._gate, self._own = gate, own
        self._open: set[web.WebSocketResponse] = set()

    async def serve(
        self, request: web.Request, answer: Answer, leave: Callable[[], Awaitable[None]]
    ) -> web.StreamResponse:
        """Answer messages until one side leaves; then await `leave`. Raises FullError."""
        async with self._gate.session():
            socket = web.WebSocketResponse(max_msg_size=MOST_BYTES, heartbeat=PING_S, compress=False)
            await socket.prepare(request)
            self._open.add(socket)
            try:
                with contextlib.suppress(ConnectionError):  # the client has disconnected
                    await _converse(socket, answer, self._own)
            finally:
                self._open.discard(socket)
                # If the connection is lost, this handler is cancelled; `leave` must still run to its end.
                await asyncio.shield(leave())
                await socket.close()
        return socket

    async def close(self, app: web.Application) -> None:
        """Close all sessions when the server ends."""
        closing = (socket.close(code=WSCloseCode.GOING_AWAY) for socket in list(self._open))
        await asyncio.gather(*closing, return_exceptions=True)


async def _converse(socket: web.WebSocketResponse, answer: Answer, own: Refuse) -> None:
    """Answer messages until one side closes. The next message is read while the present one is processed, because
    aiohttp answers pings only during a read: the `websockets` client closes after 20 s without an answer."""
    coming = asyncio.ensure_future(socket.receive())
    try:
        while (message := await coming).type not in _OVER:
            coming = asyncio.ensure_future(socket.receive())
            try:
                if message.type is not WSMsgType.TEXT:
                    raise RefusedError("INVALID_JSON", "a message is text, not binary", 400)
                response = await answer(message.data)
            except Exception as error:
                response = to_refusal(error, own).message
            if response is None:
                return
            await socket.send_str(json.dumps(response))
    finally:
        coming.cancel()


def refuse_unknown_type(kind: object) -> RefusedError:
    return RefusedError("UNKNOWN_TYPE", f"unknown message type {str(kind)[:40]!r}", 400)
