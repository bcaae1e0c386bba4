"""A real OpenAI-compatible chat server on loopback that says and breaks what a test asks for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]


def completion(text: str, *, finish_reason: str = "stop", stop_reason: str | None = None) -> dict[str, Any]:
    return {
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": finish_reason,
                "stop_reason": stop_reason,
            }
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7},
    }


@dataclass
class ChatServer:
    answer: Callable[[dict[str, Any]], str | dict[str, Any]] = lambda request: "Thought: t\nAction: turn left"
    """The text of a reply, or a whole answer."""
    tokenize: Callable[[dict[str, Any]], list[int]] | None = None
    """What vLLM's `/tokenize` answers; None: there is no such route."""
    detokenize: Callable[[list[int]], str] = lambda tokens: ""
    model: str = "toy"
    says: dict[str, Any] = field(default_factory=lambda: {"max_model_len": 4096})
    """What `GET /models` says of the model beside its name: `root`, `created`, ..."""
    usage: dict[str, Any] | Callable[[dict[str, Any]], dict[str, Any]] | None = lambda request: {
        "prompt_tokens": 9 + len(request["messages"]), "completion_tokens": 7,
    }  # fmt: skip
    """What the server counts; None: nothing."""
    list_fault: Fault | None = None
    """What `GET /models` does instead."""
    faults: list[Fault] = field(default_factory=list)
    """One for each coming chat request, first to last; requests after that are answered properly."""
    choose_fault: Callable[[dict[str, Any]], Fault | None] = lambda request: None
    """What breaks this request, for faults that go on for a whole run."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    queries: list[dict[str, str]] = field(default_factory=list)
    """Of chat requests and of lists."""
    latency: float = 0.0
    gate: asyncio.Event | None = None
    """Until it is set chat requests wait for their answer."""
    url: str = ""
    _waiting: list[tuple[int, asyncio.Event]] = field(default_factory=list)

    async def after(self, count: int) -> None:
        """Wait until `count` more chat requests have come."""
        reached = asyncio.Event()
        self._waiting.append((len(self.requests) + count, reached))
        await reached.wait()

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        self.queries.append(dict(request.query))
        for wanted, reached in self._waiting:
            if len(self.requests) >= wanted:
                reached.set()
        if self.faults:
            return await self.faults.pop(0)(request)
        if fault := self.choose_fault(body):
            return await fault(request)
        if self.latency:
            await asyncio.sleep(self.latency)
        if self.gate is not None:
            await self.gate.wait()
        answer = self.answer(body)
        if isinstance(answer, str):
            answer = {**completion(answer), "usage": self.usage(body) if callable(self.usage) else self.usage}
        return web.json_response(answer)

    async def tokens(self, request: web.Request) -> web.StreamResponse:
        assert self.tokenize is not None
        ids = self.tokenize(await request.json())
        return web.json_response({"tokens": ids, "count": len(ids), "max_model_len": 4096})

    async def text(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"prompt": self.detokenize((await request.json())["tokens"])})

    async def models(self, request: web.Request) -> web.StreamResponse:
        self.queries.append(dict(request.query))
        if self.list_fault is not None:
            return await self.list_fault(request)
        return web.json_response({"data": [{"id": self.model, **self.says}]})

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ChatServer]:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/chat/completions", self.chat)
        app.router.add_get("/v1/models", self.models)
        if self.tokenize is not None:
            app.router.add_post("/tokenize", self.tokens)
            app.router.add_post("/detokenize", self.text)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            port = runner.addresses[0][1]
            self.url = f"http://127.0.0.1:{port}/v1"
            yield self
        finally:
            await runner.cleanup()


def status(code: int, message: str = "no", headers: dict[str, str] | None = None) -> Fault:
    async def fault(request: web.Request) -> web.StreamResponse:
        return web.json_response({"error": {"message": message}}, status=code, headers=headers)

    return fault


AT_ONCE = {"Retry-After": "0"}
"""Headers of a failure after which nobody has to wait: the pauses grow to seconds otherwise."""


def body(text: str, content_type: str = "application/json", status: int = 200) -> Fault:
    async def fault(request: web.Request) -> web.StreamResponse:
        return web.Response(text=text, content_type=content_type, status=status)

    return fault


def streamed(text: str) -> Fault:
    """No fault at all: a whole answer as server-sent events, for clients that ask with `stream`."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "toy"}
        for delta, reason in (({"role": "assistant", "content": text}, None), ({}, "stop")):
            chunk = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        await response.write(f"data: {json.dumps({**head, 'choices': [], 'usage': usage})}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

    return answer


async def close_in_the_middle(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000", "Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(json.dumps(completion("Action: x")).encode()[:40])
    assert request.transport is not None
    request.transport.close()
    return response


async def ten_megabytes(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    for _ in range(160):
        await response.write(b" " * 65536)
    return response


def drip(pieces: int, pause: float) -> Fault:
    """A proper answer in small pieces."""

    async def fault(request: web.Request) -> web.StreamResponse:
        answer = completion("Action: turn up")
        answer["usage"]["prompt_tokens"] = 9 + len(
            (await request.json())["messages"]
        )  # as `ChatServer.usage`
        data = json.dumps(answer).encode()
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        size = -(-len(data) // pieces)
        for start in range(0, len(data), size):
            await response.write(data[start : start + size])
            await asyncio.sleep(pause)
        return response

    return fault


async def drip_without_end(request: web.Request) -> web.StreamResponse:
    """A space now and then, as gateways keep a connection open, and never an answer."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    with suppress(ConnectionError):
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.05)
    return response


async def hang_up(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def stall(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"choices"')
    await asyncio.sleep(60)
    return response
