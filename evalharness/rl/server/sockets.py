"""The WebSockets of all clients: one message after the other, each answered."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from evalharness.door.wire import MOST_BYTES, Refuse, RefusedError, refused
from evalharness.rl.server.gate import Gate

PING_S = 600.0
"""Half of it is waited for the answer: a client whose machine is gone gives none, one that is busy with a training
step gives it late. A connection that is closed ends its session at once."""
_OVER = (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR)
Answer = Callable[[str], Awaitable[dict[str, Any] | None]]
"""The response to one message; None when the client takes its leave."""


class Sockets:
    """Those of all clients: each holds one session of the gate, and the server's end closes them."""

    def __init__(self, gate: Gate, own: Refuse = lambda error: None) -> None:
        self._gate, self._own = gate, own
        self._open: set[web.WebSocketResponse] = set()

    async def serve(
        self, request: web.Request, answer: Answer, leave: Callable[[], Awaitable[None]]
    ) -> web.StreamResponse:
        """Until one of the two sides leaves; then `leave` is awaited. Raises FullError."""
        async with self._gate.session():
            socket = web.WebSocketResponse(max_msg_size=MOST_BYTES, heartbeat=PING_S, compress=False)
            await socket.prepare(request)
            self._open.add(socket)
            try:
                with contextlib.suppress(ConnectionError):  # the client is gone
                    await _converse(socket, answer, self._own)
            finally:
                self._open.discard(socket)
                # A connection that is lost cancels whatever goes on here: not this.
                await asyncio.shield(leave())
                await socket.close()
        return socket

    async def close(self, app: web.Application) -> None:
        """The server ends: so do the sessions."""
        closing = (socket.close(code=WSCloseCode.GOING_AWAY) for socket in list(self._open))
        await asyncio.gather(*closing, return_exceptions=True)


async def _converse(socket: web.WebSocketResponse, answer: Answer, own: Refuse) -> None:
    """Until one of the two leaves. One message is read ahead: pings are answered only while somebody reads, and a
    client that gets no answer to them for 20 s (`websockets`) takes the server for dead while a group begins."""
    coming = asyncio.ensure_future(socket.receive())
    try:
        while (message := await coming).type not in _OVER:
            coming = asyncio.ensure_future(socket.receive())
            try:
                if message.type is not WSMsgType.TEXT:
                    raise RefusedError("INVALID_JSON", "a message is text, not binary", 400)
                said = await answer(message.data)
            except Exception as error:
                said = refused(error, own).message
            if said is None:
                return
            await socket.send_str(json.dumps(said))
    finally:
        coming.cancel()


def unknown_type(kind: object) -> RefusedError:
    return RefusedError("UNKNOWN_TYPE", f"unknown message type {str(kind)[:40]!r}", 400)
