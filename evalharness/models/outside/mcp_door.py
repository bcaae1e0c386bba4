"""MCP with one tool, by the official SDK: `act(command, session)`.

The SDK's own sessions are not used: its newest protocol has none. The episode is named by the tool's argument.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from aiohttp import web
from pydantic import ValidationError

from evalharness.base.version import __version__
from evalharness.models.openenv.door import given_token
from evalharness.models.openenv.wire import MOST_BYTES, Handler, refused
from evalharness.models.outside.application import is_gone, shown
from evalharness.models.outside.hub import Hub
from evalharness.models.outside.messages import Action

_DESCRIPTION = """\
Act in a text world. The first call of an episode has no arguments: its answer has the instructions, the goal, what is
observed, and a `session`. Each further call has that `session` and one `command`; its answer has what is observed then.
After `done` the next call without arguments begins the next episode, until the error RUN_OVER."""
_SCHEMA = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "One action, as the instructions word it"},
        "session": {"type": "string", "description": "As the first answer of the episode has it"},
        "usage": {
            "type": "object",
            "description": "Optional: model, prompt_tokens, completion_tokens and cost since the last call",
        },
    },
}
_request: ContextVar[web.Request] = ContextVar("_request")


def is_installed() -> bool:
    try:
        import mcp.server.lowlevel  # noqa: F401
    except ImportError:
        return False
    return True


@asynccontextmanager
async def mcp_door(hub: Hub) -> AsyncIterator[Handler]:
    """Answers requests to `/mcp`. Needs `evalharness[mcp]`."""
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    async def list_tools(context: Any, asked: Any) -> Any:
        tool = types.Tool(name="act", description=_DESCRIPTION, input_schema=_SCHEMA)
        return types.ListToolsResult(tools=[tool])

    async def call_tool(context: Any, asked: Any) -> Any:
        try:
            if asked.name != "act":
                raise ValueError(f"there is one tool, act; not {asked.name[:40]!r}")
            answer, failed = await _act(hub, asked.arguments or {}), False
        except ValueError as error:
            why = str(refused(error) if isinstance(error, ValidationError) else error)
            answer, failed = {"code": "VALIDATION_ERROR", "detail": why}, True
        except Exception as error:
            wrong = refused(error)
            answer, failed = {"code": wrong.code, "detail": str(wrong)}, True
        text = types.TextContent(type="text", text=json.dumps(answer, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=answer, is_error=failed)

    server: Any = Server("evalharness", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)
    manager = StreamableHTTPSessionManager(
        server, stateless=True, json_response=True, max_request_body_size=MOST_BYTES
    )

    async def handle(request: web.Request) -> web.StreamResponse:
        _request.set(request)
        return await _through(manager.handle_request, request)

    ready = asyncio.Event()

    async def at_work() -> None:
        # In a task of its own: what fails in the run would come out of the SDK's task group as a group of errors.
        async with manager.run():
            ready.set()
            await asyncio.Event().wait()

    running = asyncio.create_task(at_work())
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield handle
    finally:
        waiting.cancel()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def _act(hub: Hub, arguments: dict[str, Any]) -> dict[str, Any]:
    unknown = arguments.keys() - _SCHEMA["properties"].keys()  # type: ignore[attr-defined]
    if unknown:
        raise ValueError(f"act has no argument {min(unknown)[:40]!r}")
    session = arguments.get("session") or ""
    if not isinstance(session, str):
        raise ValueError("session is a text")
    if not session:
        if arguments.get("command"):
            raise ValueError(
                "a command needs the session of its episode; call without arguments to begin one"
            )
        request = _request.get()
        offer, seen = await hub.claim(given_token(request), lambda: is_gone(request))
        return {"session": offer.session, **shown(seen)}
    action = Action(text=arguments.get("command", ""), usage=arguments.get("usage"))
    return {"session": session, **shown(await hub.session(session).act(action))}


async def _through(asgi: Any, request: web.Request) -> web.StreamResponse:
    """One request, handed to an ASGI application: the SDK speaks nothing else."""
    raw = await request.read()
    sent = False
    status, headers, parts = 500, [], []

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if sent:
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": raw, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status = message["status"]
            headers = [
                (name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]
            ]
        else:
            parts.append(message.get("body", b""))

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.raw_path.encode(),
        "query_string": request.query_string.encode(),
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.raw_headers],
        "client": None,
        "server": None,
        "state": {},
    }
    await asgi(scope, receive, send)
    # aiohttp counts the bytes itself.
    kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
    return web.Response(body=b"".join(parts), status=status, headers=kept)
