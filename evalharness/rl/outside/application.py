"""The HTTP interface of external agents: `/reset`, `/step`, `/close`. Each episode has its own token."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from evalharness.door.door import Door, read_token
from evalharness.rl.outside.messages import Action, Request, StepRequest
from evalharness.rl.outside.session import Answer, Session, Sessions
from evalharness.rl.wire import MOST_BYTES, make_guard, read_body


def _to_json(answer: Answer) -> dict[str, Any]:
    return {"observation": answer.observation.model_dump(), "done": answer.done}


def application(sessions: Sessions, door: Door) -> web.Application:
    def session_of(request: web.Request) -> Session:
        session = sessions.by_token[read_token(request)]
        session.count_request()
        return session

    async def reset(request: web.Request) -> web.Response:
        session_of(request)
        await read_body(request, Request)
        return web.json_response(_to_json(sessions.claim(read_token(request))))

    async def step(request: web.Request) -> web.Response:
        session = session_of(request)
        asked: StepRequest = await read_body(request, StepRequest)
        action = Action(text=asked.action) if isinstance(asked.action, str) else asked.action
        return web.json_response(_to_json(await session.act(action)))

    async def close(request: web.Request) -> web.Response:
        session = session_of(request)
        await read_body(request, Request)
        session.stop("left")
        return web.json_response({})

    app = web.Application(middlewares=[make_guard(door)], client_max_size=MOST_BYTES)
    app.add_routes([web.post("/reset", reset), web.post("/step", step), web.post("/close", close)])
    return app
