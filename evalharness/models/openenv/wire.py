"""Messages and errors on their way: JSON over HTTP and WebSocket, within limits."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import ClientError, WSCloseCode, WSMsgType, web
from pydantic import BaseModel, ValidationError

from evalharness.base.errors import EvalharnessError
from evalharness.models.openenv.door import Door, FullError, Gate

MOST_BYTES = 2 << 20
"""Of one message: replies are text, and the longest one that is taken fits in any script. Beyond that a connection is
closed with code 1009, a request refused with 413."""
PING_S = 600.0
"""Half of it is waited for the answer: a client whose machine is gone gives none, one that is busy with a training
step gives it late. A connection that is closed ends its session at once."""
_MOST_KEYS = 256
"""Of one object. Each unknown key is an error to collect: 90,000 of them took a second, in which nobody is answered."""
_MOST_TEXT = 1000
"""Characters of a refusal, which may name what was sent."""
_OVER = (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR)
_LOG = logging.getLogger("evalharness")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Answer = Callable[[str], Awaitable[dict[str, Any] | None]]
"""The response to one message; None when the client takes its leave."""
Refuse = Callable[[Exception], "RefusedError | None"]
"""What one server alone knows of its own errors."""


class RefusedError(Exception):
    """An error as the client gets it: one of OpenEnv's codes, what is wrong, and the status over HTTP."""

    def __init__(self, code: str, text: str, status: int) -> None:
        super().__init__(text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}...")
        self.code, self.status = code, status

    @property
    def message(self) -> dict[str, Any]:
        """Over the WebSocket."""
        return {"type": "error", "data": {"message": str(self), "code": self.code}}

    @property
    def response(self) -> web.Response:
        headers = {"Retry-After": "1"} if self.status == 429 else {}
        body = {"detail": str(self), "code": self.code}
        return web.json_response(body, status=self.status, headers=headers)


def refused(error: Exception, own: Refuse = lambda error: None) -> RefusedError:
    match error:
        case RefusedError():
            return error
        case ValidationError():
            # Not pydantic's own text: that repeats the input, which can be a megabyte.
            wrong = [
                f"{'.'.join(map(str, e['loc']))[:80] or 'message'}: {e['msg'][:200]}"
                for e in error.errors(include_url=False, include_input=False)[:5]
            ]
            return RefusedError("VALIDATION_ERROR", "; ".join(wrong), 422)
        case FullError():
            return RefusedError("CAPACITY_REACHED", str(error), 429)
    if (known := own(error)) is not None:
        return known
    if isinstance(error, EvalharnessError):
        return RefusedError("EXECUTION_ERROR", f"{error}; the episode is void: reset", 500)
    _LOG.error("a session failed: %s: %s", type(error).__name__, error)
    return RefusedError("EXECUTION_ERROR", f"the session failed ({type(error).__name__}): reset", 500)


def parsed(raw: str | bytes) -> dict[str, Any]:
    """Raises RefusedError for what is no JSON object, and for objects that no message of the protocol has."""
    try:
        value = json.loads(raw, object_pairs_hook=_small)
    except (ValueError, RecursionError) as error:
        raise RefusedError("INVALID_JSON", f"not JSON: {str(error)[:200]}", 400) from None
    if not isinstance(value, dict):
        raise RefusedError("INVALID_JSON", "a message is a JSON object", 400)
    return value


def _small(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > _MOST_KEYS:
        raise RefusedError("VALIDATION_ERROR", f"an object with more than {_MOST_KEYS} keys", 422)
    return dict(pairs)


async def body(request: web.Request, model: type[BaseModel]) -> Any:
    """Raises RefusedError, ValidationError."""
    try:
        raw = await request.read()
    except (ClientError, OSError):  # not worth a line of the log: a stranger could fill it
        raise RefusedError("INVALID_JSON", "the request ended before its end", 400) from None
    return model.model_validate(parsed(raw) if raw else {})


def unknown_type(kind: object) -> RefusedError:
    return RefusedError("UNKNOWN_TYPE", f"unknown message type {str(kind)[:40]!r}", 400)


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


def guarded(door: Door, own: Refuse = lambda error: None) -> Any:
    """A middleware: strangers are turned away, and every error becomes an answer."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if (refusal := door.refusal(request)) is not None:
            raise refusal
        try:
            return await handler(request)
        except (web.HTTPException, asyncio.CancelledError):
            raise
        except Exception as error:
            return refused(error, own).response

    return guard
