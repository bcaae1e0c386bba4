"""Serve the WebSockets of all clients; each client's messages are answered one by one."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from evalharness.rl.server.gate import Gate
from evalharness.rl.wire import MOST_BYTES, Refuse, RefusedError, refused

PING_S = 600.0
"""Seconds between pings; half of it is the time for the answer. A client whose machine is lost does not answer; one
that is busy with a training step answers late. A closed connection ends its session at once."""
_OVER = (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR)
Answer = Callable[[str], Awaitable[dict[str, Any] | None]]
"""The response to one message; None if the client closes its session."""


class Sockets:
    """All clients' sockets: each holds one session of the gate, and the server's end closes them."""

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
                with contextlib.suppress(ConnectionError):  # the client is gone
                    await _converse(socket, answer, self._own)
            finally:
                self._open.discard(socket)
                # A lost connection cancels this handler, but not `leave`.
                await asyncio.shield(leave())
                await socket.close()
        return socket

    async def close(self, app: web.Application) -> None:
        """Close all sessions when the server ends."""
        closing = (socket.close(code=WSCloseCode.GOING_AWAY) for socket in list(self._open))
        await asyncio.gather(*closing, return_exceptions=True)


async def _converse(socket: web.WebSocketResponse, answer: Answer, own: Refuse) -> None:
    """Answer messages until one side leaves. One message is read ahead: pings are answered only during a read, and
    without an answer for 20 s a client (`websockets`) closes the connection, for example while a group begins."""
    coming = asyncio.ensure_future(socket.receive())
    try:
        while (message := await coming).type not in _OVER:
            coming = asyncio.ensure_future(socket.receive())
            try:
                if message.type is not WSMsgType.TEXT:
                    raise RefusedError("INVALID_JSON", "a message is text, not binary", 400)
                response = await answer(message.data)
            except Exception as error:
                response = refused(error, own).message
            if response is None:
                return
            await socket.send_str(json.dumps(response))
    finally:
        coming.cancel()


def unknown_type(kind: object) -> RefusedError:
    return RefusedError("UNKNOWN_TYPE", f"unknown message type {str(kind)[:40]!r}", 400)
