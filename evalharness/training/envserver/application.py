"""The HTTP and WebSocket side: OpenEnv's paths, and what keeps strangers and floods out."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError, WSCloseCode, WSMsgType, web
from pydantic import BaseModel, ValidationError

from evalharness.base.errors import EvalharnessError
from evalharness.base.version import __version__
from evalharness.training.envserver import messages
from evalharness.training.envserver.gate import FullError, Gate
from evalharness.training.envserver.pools import BusyError
from evalharness.training.envserver.service import ClientSession, Service
from evalharness.training.envserver.session import NoEpisodeOpenError
from evalharness.training.envserver.tasks import UnknownTaskError

MOST_BYTES = 1 << 20
"""Of one message: replies are text. Beyond that a connection is closed with code 1009, a request refused with 413."""
_PING_S = 600.0
"""Half of it is waited for the answer: a client whose machine is gone gives none, one that is busy with a training
step gives it late. A connection that is closed ends its session at once."""
_LOG = logging.getLogger("evalharness")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Door:
    """Who may come in."""

    gate: Gate
    token: str | None = None
    """None: whoever is on this machine."""

    def refusal(self, request: web.Request) -> web.HTTPException | None:
        """The reason why a request is turned away."""
        # A page in somebody's browser can send requests to 127.0.0.1; it cannot hide where it comes from.
        if "Origin" in request.headers:
            return web.HTTPForbidden(text="requests of web pages are not answered")
        if request.path == "/health":
            return None
        if self.token is None:
            if not is_loopback(_host(request)):
                return web.HTTPForbidden(text="this server answers to the addresses of this machine only")
            return None
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(errors="replace"), self.token.encode()):
            return web.HTTPUnauthorized(
                text="give the token that the server printed: Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return None


def is_loopback(host: str) -> bool:
    """Of a name, `localhost` alone: any other is resolved by somebody else."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host(request: web.Request) -> str:
    host = request.host
    bare = host if host.endswith("]") else host.rsplit(":", 1)[0]
    return bare.removeprefix("[").removesuffix("]")


class RefusedError(Exception):
    """An error as the client gets it: one of OpenEnv's codes, what is wrong, and the status over HTTP."""

    def __init__(self, code: str, text: str, status: int) -> None:
        super().__init__(text)
        self.code, self.status = code, status


def _refused(error: Exception) -> RefusedError:
    match error:
        case RefusedError():
            return error
        case ValidationError():
            # Not pydantic's own text: that repeats the input, which can be a megabyte.
            wrong = [f"{'.'.join(map(str, e['loc'])) or 'message'}: {e['msg']}" for e in error.errors()[:5]]
            return RefusedError("VALIDATION_ERROR", "; ".join(wrong), 422)
        case UnknownTaskError():
            return RefusedError("VALIDATION_ERROR", str(error), 400)
        case NoEpisodeOpenError():
            return RefusedError("EXECUTION_ERROR", str(error), 409)
        case BusyError() | FullError():
            return RefusedError("CAPACITY_REACHED", str(error), 429)
        case EvalharnessError():
            return RefusedError("EXECUTION_ERROR", f"{error}; the episode is void: reset", 500)
    _LOG.error("a session failed: %s: %s", type(error).__name__, error)
    return RefusedError("EXECUTION_ERROR", f"the session failed ({type(error).__name__}): reset", 500)


def _parsed(raw: str | bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise RefusedError("INVALID_JSON", f"not JSON: {str(error)[:200]}", 400) from None
    if not isinstance(value, dict):
        raise RefusedError("INVALID_JSON", "a message is a JSON object", 400)
    return value


async def _answer(session: ClientSession, raw: str) -> dict[str, Any] | None:
    """The response to one message; None when the client takes its leave."""
    message = _parsed(raw)
    kind, data = message.get("type"), message.get("data", {})
    match kind:
        case "reset":
            asked = messages.ResetRequest.model_validate(data)
            return {"type": "observation", "data": await session.reset(asked)}
        case "step":
            action = messages.TextAction.model_validate(data)
            return {"type": "observation", "data": await session.step(action)}
        case "state":
            return {"type": "state", "data": session.state()}
        case "close":
            return None
    raise RefusedError("UNKNOWN_TYPE", f"unknown message type {str(kind)[:40]!r}", 400)


def _error(refused: RefusedError) -> dict[str, Any]:
    return {"type": "error", "data": {"message": str(refused), "code": refused.code}}


async def _converse(socket: web.WebSocketResponse, session: ClientSession) -> None:
    async for message in socket:
        try:
            if message.type is not WSMsgType.TEXT:
                raise RefusedError("INVALID_JSON", "a message is text, not binary", 400)
            answer = await _answer(session, message.data)
        except Exception as error:
            answer = _error(_refused(error))
        if answer is None:
            return
        await socket.send_str(json.dumps(answer))


def application(service: Service, door: Door) -> web.Application:
    sockets: set[web.WebSocketResponse] = set()

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if (refusal := door.refusal(request)) is not None:
            raise refusal
        try:
            return await handler(request)
        except (web.HTTPException, asyncio.CancelledError):
            raise
        except Exception as error:
            refused = _refused(error)
            headers = {"Retry-After": "1"} if refused.status == 429 else {}
            body = {"detail": str(refused), "code": refused.code}
            return web.json_response(body, status=refused.status, headers=headers)

    async def body(request: web.Request, model: type[BaseModel]) -> Any:
        try:
            raw = await request.read()
        except (ClientError, OSError):  # not worth a line of the log: a stranger could fill it
            raise RefusedError("INVALID_JSON", "the request ended before its end", 400) from None
        return model.model_validate(_parsed(raw) if raw else {})

    def named(request: web.Request) -> None:
        if request.match_info["env"].lower() != service.name:
            raise web.HTTPNotFound(text=f"unknown environment; there is: {service.name}")

    async def websocket(request: web.Request) -> web.StreamResponse:
        if "session_id" in request.query:
            raise web.HTTPForbidden(
                text="a session belongs to the connection that opened it; there are no ids"
            )
        async with door.gate.session():
            socket = web.WebSocketResponse(max_msg_size=MOST_BYTES, heartbeat=_PING_S, compress=False)
            await socket.prepare(request)
            session = service.open()
            sockets.add(socket)
            try:
                await _converse(socket, session)
            except ConnectionError:
                pass  # the client is gone
            finally:
                sockets.discard(socket)
                await session.close()
                await socket.close()
        return socket

    async def reset(request: web.Request) -> web.Response:
        asked = await body(request, messages.ResetRequest)
        async with door.gate.session():
            session = service.open()
            try:
                return web.json_response(await session.reset(asked))
            finally:
                await session.close()

    async def step(request: web.Request) -> web.Response:
        raise RefusedError("SESSION_ERROR", "a request has no session: play over the WebSocket /ws", 409)

    async def state(request: web.Request) -> web.Response:
        return web.json_response(service.open().state())

    async def mcp(request: web.Request) -> web.Response:
        error = {"code": -32601, "message": "no tools: play over the WebSocket /ws"}
        return web.json_response({"jsonrpc": "2.0", "id": None, "error": error})

    async def health(request: web.Request) -> web.Response:
        return web.json_response({"status": "healthy"})

    async def metadata(request: web.Request) -> web.Response:
        return web.json_response({**service.metadata(), "version": __version__})

    async def schema(request: web.Request) -> web.Response:
        return web.json_response(messages.schemas())

    async def openapi(request: web.Request) -> web.Response:
        return web.json_response(messages.openapi(f"evalharness: {service.name}", __version__))

    async def environments(request: web.Request) -> web.Response:
        return web.json_response([service.name])

    async def splits(request: web.Request) -> web.Response:
        named(request)
        return web.json_response(service.splits())

    async def tasks(request: web.Request) -> web.Response:
        named(request)
        asked = await body(request, messages.SplitRequest)
        listed = service.tasks(messages.TaskRangeRequest(split=asked.split))
        return web.json_response({"tasks": listed, "env_name": service.name})

    async def num_tasks(request: web.Request) -> web.Response:
        named(request)
        asked = await body(request, messages.SplitRequest)
        return web.json_response({"num_tasks": len(service.table.split(asked.split))})

    async def task(request: web.Request) -> web.Response:
        named(request)
        return web.json_response({"task": service.task(await body(request, messages.TaskRequest))})

    async def task_range(request: web.Request) -> web.Response:
        named(request)
        return web.json_response({"tasks": service.tasks(await body(request, messages.TaskRangeRequest))})

    async def leave(app: web.Application) -> None:
        """The server ends: so do the sessions."""
        closing = (socket.close(code=WSCloseCode.GOING_AWAY) for socket in list(sockets))
        await asyncio.gather(*closing, return_exceptions=True)

    app = web.Application(middlewares=[guard], client_max_size=MOST_BYTES)
    app.on_shutdown.append(leave)
    app.add_routes(
        [
            web.get("/ws", websocket),
            web.post("/reset", reset),
            web.post("/step", step),
            web.get("/state", state),
            web.post("/mcp", mcp),
            web.get("/health", health),
            web.get("/metadata", metadata),
            web.get("/schema", schema),
            web.get("/openapi.json", openapi),
            web.get("/list_environments", environments),
            web.get("/{env}/splits", splits),
            web.post("/{env}/tasks", tasks),
            web.post("/{env}/num_tasks", num_tasks),
            web.post("/{env}/task", task),
            web.post("/{env}/task_range", task_range),
        ]
    )
    return app
