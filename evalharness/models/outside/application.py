"""The front doors: plain HTTP, and OpenEnv over a WebSocket."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from evalharness.base.version import __version__
from evalharness.models.openenv.door import Door, Gate, given_token
from evalharness.models.openenv.wire import (
    MOST_BYTES,
    Sockets,
    body,
    guarded,
    parsed,
    unknown_type,
)
from evalharness.models.outside import messages
from evalharness.models.outside.hub import MOST_REQUESTS, Hub, Offer, Seen
from evalharness.models.outside.messages import Action

_DESCRIPTION = "Episodes of one evaluation, each given to one agent; which one is not the agent's choice."


def shown(seen: Seen) -> dict[str, Any]:
    """As OpenEnv's clients read it; an agent learns no reward."""
    return {"observation": seen.observation.model_dump(), "reward": None, "done": seen.done}


class Talk:
    """A WebSocket's: one episode at a time."""

    def __init__(self, hub: Hub, request: web.Request) -> None:
        self._hub, self._request = hub, request
        self._offer: Offer | None = None
        self._requests = 0
        """Since the last action."""

    async def answer(self, raw: str) -> dict[str, Any] | None:
        """The response to one message; None: the connection is closed."""
        self._requests += 1
        if self._requests > MOST_REQUESTS:
            if self._offer is not None:
                self._offer.stop("too_many_requests")
            return None
        message = parsed(raw)
        kind, data = message.get("type"), message.get("data", {})
        match kind:
            case "reset":
                messages.ResetRequest.model_validate(data)
                await self.leave()
                self._offer, seen = await self._hub.claim(
                    given_token(self._request), lambda: is_gone(self._request)
                )
                return {"type": "observation", "data": shown(seen)}
            case "step":
                action = Action.model_validate(data)
                offer = self._hub.session("") if self._offer is None else self._offer
                seen = await offer.act(action)
                self._requests = 0
                return {"type": "observation", "data": shown(seen)}
            case "state":
                return {"type": "state", "data": _state(self._offer)}
            case "close":
                return None
        raise unknown_type(kind)

    async def leave(self) -> None:
        """An episode that is not at its end is lost."""
        if self._offer is not None:
            self._offer.stop("left")
            self._offer = None


def is_gone(request: web.Request) -> bool:
    """Whether the one who asked has closed the connection since."""
    return request.transport is None or request.transport.is_closing()


def _state(offer: Offer | None) -> dict[str, Any]:
    if offer is None:
        return messages.State().model_dump()
    return messages.State(episode_id=offer.session, step_count=offer.steps).model_dump()


def application(hub: Hub, door: Door, gate: Gate) -> web.Application:
    sockets = Sockets(gate)

    async def websocket(request: web.Request) -> web.StreamResponse:
        talk = Talk(hub, request)
        return await sockets.serve(request, talk.answer, talk.leave)

    async def reset(request: web.Request) -> web.Response:
        await body(request, messages.ResetRequest)
        async with gate.session():
            offer, seen = await hub.claim(given_token(request), lambda: is_gone(request))
        return web.json_response({"session": offer.session, **shown(seen)})

    async def step(request: web.Request) -> web.Response:
        asked: messages.StepRequest = await body(request, messages.StepRequest)
        action = Action(text=asked.action) if isinstance(asked.action, str) else asked.action
        return web.json_response(shown(await hub.session(asked.session).act(action)))

    async def close(request: web.Request) -> web.Response:
        asked: messages.SessionRequest = await body(request, messages.SessionRequest)
        hub.session(asked.session).stop("left")
        return web.json_response({})

    async def state(request: web.Request) -> web.Response:
        session = request.query.get("session")
        offer = None if session is None else hub.session(session)
        if offer is not None:
            offer.count_request()
        return web.json_response(_state(offer))

    fixed = {
        "/health": {"status": "healthy"},
        "/metadata": {"name": "evalharness", "description": _DESCRIPTION, "version": __version__},
        "/schema": messages.schemas(),
    }

    async def fixed_answer(request: web.Request) -> web.Response:
        return web.json_response(fixed[request.path])

    app = web.Application(middlewares=[guarded(door)], client_max_size=MOST_BYTES)
    app.on_shutdown.append(sockets.close)
    app.add_routes(
        [
            web.get("/ws", websocket),
            web.post("/reset", reset),
            web.post("/step", step),
            web.post("/close", close),
            web.get("/state", state),
            *(web.get(path, fixed_answer) for path in fixed),
        ]
    )
    return app
