"""The server's HTTP and WebSocket interface: OpenEnv's URL paths, and limits on access and number of clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from aiohttp import web
from pydantic import BaseModel

from evalharness.base.version import __version__
from evalharness.door.door import Door
from evalharness.rl.server import messages
from evalharness.rl.server.gate import FullError, Gate
from evalharness.rl.server.group import EpisodeResult, Group, GroupTooLargeError, UnknownIndexError
from evalharness.rl.server.pools import BusyError
from evalharness.rl.server.service import ClientSession, NoEpisodeOpenError, Service
from evalharness.rl.server.sockets import Sockets, refuse_unknown_type
from evalharness.rl.server.tasks import UnknownTaskError
from evalharness.rl.wire import (
    MOST_BYTES,
    RefusedError,
    make_guard,
    parse_message,
    read_body,
    to_refusal,
)


def _map_error(error: Exception) -> RefusedError | None:
    match error:
        case UnknownTaskError() | UnknownIndexError() | GroupTooLargeError():
            return RefusedError("VALIDATION_ERROR", str(error), 400)
        case NoEpisodeOpenError():
            return RefusedError("EXECUTION_ERROR", str(error), 409)
        case BusyError() | FullError():
            return RefusedError("CAPACITY_REACHED", str(error), 429)
    return None


async def _answer(group: Group, raw: str) -> dict[str, Any] | None:
    """Return the response to one message; None if the client closes its session."""
    message = parse_message(raw)
    kind, data = message.get("type"), message.get("data", {})
    match kind:
        case "reset":
            asked = messages.ResetRequest.model_validate(data)
            return {"type": "observation", "data": await group.first.reset(asked)}
        case "step":
            action = messages.TextAction.model_validate(data)
            return {"type": "observation", "data": await group.first.step(action)}
        case "state":
            return {"type": "state", "data": group.first.state()}
        case "reset_many":
            resets = messages.ResetManyRequest.model_validate(data)
            return {"type": "observations", "data": _observations(await group.reset(resets))}
        case "step_many":
            replies = messages.StepManyRequest.model_validate(data)
            return {"type": "observations", "data": _observations(await group.step(replies))}
        case "state_many":
            return {"type": "states", "data": group.states()}
        case "close":
            return None
    raise refuse_unknown_type(kind)


def _observations(outcomes: Sequence[EpisodeResult]) -> list[dict[str, Any]]:
    """Return one entry per episode: its observation, or its error."""
    return [
        {"error": to_refusal(each, _map_error).message["data"]} if isinstance(each, Exception) else each
        for each in outcomes
    ]


def application(service: Service, door: Door, gate: Gate) -> web.Application:
    sockets = Sockets(gate, _map_error)

    async def websocket(request: web.Request) -> web.StreamResponse:
        if "session_id" in request.query:
            raise web.HTTPForbidden(
                text="a session belongs to the connection that opened it; there are no ids"
            )
        group = Group(partial(ClientSession, service), gate)
        return await sockets.serve(request, partial(_answer, group), group.close)

    async def reset(request: web.Request) -> web.Response:
        asked = await read_body(request, messages.ResetRequest)
        async with gate.session():
            session = ClientSession(service)
            try:
                return web.json_response(await session.reset(asked))
            finally:
                await session.close()

    async def step(request: web.Request) -> web.Response:
        raise RefusedError("SESSION_ERROR", "a request has no session: play over the WebSocket /ws", 409)

    async def state(request: web.Request) -> web.Response:
        return web.json_response(ClientSession(service).state())

    async def mcp(request: web.Request) -> web.Response:
        error = {"code": -32601, "message": "no tools: play over the WebSocket /ws"}
        return web.json_response({"jsonrpc": "2.0", "id": None, "error": error})

    fixed: dict[str, Callable[[], Any]] = {
        "/health": lambda: {"status": "healthy"},
        "/status": lambda: {"families": service.pools.status()},
        "/metadata": lambda: {**service.metadata(), "version": __version__},
        "/schema": messages.schemas,
        "/openapi.json": lambda: messages.openapi(f"evalharness: {service.name}", __version__),
        "/list_environments": lambda: [service.name],
    }

    async def make_fixed_answer(request: web.Request) -> web.Response:
        return web.json_response(fixed[request.path]())

    def check_name(request: web.Request) -> None:
        if request.match_info["env"].lower() != service.name:
            raise web.HTTPNotFound(text=f"unknown environment; there is: {service.name}")

    async def splits(request: web.Request) -> web.Response:
        check_name(request)
        return web.json_response(service.splits())

    task_calls: dict[str, tuple[type[BaseModel], Callable[[Any], dict[str, Any]]]] = {
        "tasks": (messages.SplitRequest, lambda asked: {
            "tasks": service.tasks(messages.TaskRangeRequest(split=asked.split)), "env_name": service.name,
        }),
        "num_tasks": (messages.SplitRequest, lambda asked: {"num_tasks": len(service.table.split(asked.split))}),
        "task": (messages.TaskRequest, lambda asked: {"task": service.task(asked)}),
        "task_range": (messages.TaskRangeRequest, lambda asked: {"tasks": service.tasks(asked)}),
    }  # fmt: skip

    async def task_call(request: web.Request) -> web.Response:
        check_name(request)
        kind, answer = task_calls[request.match_info["call"]]
        return web.json_response(answer(await read_body(request, kind)))

    app = web.Application(middlewares=[make_guard(door, _map_error)], client_max_size=MOST_BYTES)
    app.on_shutdown.append(sockets.close)
    app.add_routes(
        [
            web.get("/ws", websocket),
            web.post("/reset", reset),
            web.post("/step", step),
            web.get("/state", state),
            web.post("/mcp", mcp),
            *(web.get(path, make_fixed_answer) for path in fixed),
            web.get("/{env}/splits", splits),
            web.post(f"/{{env}}/{{call:{'|'.join(task_calls)}}}", task_call),
        ]
    )
    return app
