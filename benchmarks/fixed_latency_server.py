"""An OpenAI-compatible chat server that answers every request after the same time, for benchmarks of the harness.

    python benchmarks/fixed_latency_server.py LATENCY_SECONDS [PLACES] [--metrics] [--replicas N]

Prints its port; of N servers in one process all ports, in one line. Each works on PLACES requests at once, as a real
server does that is saturated there, and lets others wait in the order they came; without PLACES (or with 0) on any
number. `--metrics`: a page `/metrics` says how many requests run and wait, in vLLM's words; else there is no such page.
It says the same harmless thing to all and does not read the conversation, so that it takes as little as possible of the
cores it shares with what is measured; a web framework would take as much as that. `--replicas` walk through rings of
`growth_environment`, to the right or to the left by what was asked: episodes differ, and are the same in every run.
A reply reports a quarter of the request's bytes as prompt tokens, so that they grow as a conversation does.
`GET /measured` gives the CPU seconds that the server has taken and when it replied (seconds of the monotonic clock).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
import zlib
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import cast

import uvloop

PROMPT_TOKENS = 7_777_777
"""Stands in a prepared reply until the request is known."""


def completion(text: str, completion_tokens: int) -> bytes:
    message = {"role": "assistant", "content": text}
    return response(
        {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": completion_tokens},
        }
    )


def response(value: object, status: str = "200 OK") -> bytes:
    return page(json.dumps(value).encode(), "application/json", status)


def page(body: bytes, kind: str = "text/plain", status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


LOOKING = (completion("Thought: I look around first.\nAction: look", 30),)
WALKING = (
    completion("Thought: on\nAction: go right", 8),
    completion("Thought: back\nAction: go left", 8),
)
MODELS = response({"data": [{"id": "fixed"}]})
NOT_FOUND = response({}, "404 Not Found")


class Places:
    """Requests that are worked on, and those that wait."""

    def __init__(self, latency: float, places: int | None) -> None:
        self.latency = latency
        self.places = places
        self.running = 0
        self.reply_times: list[float] = []
        self.prompt_tokens = 0
        self.waiting: deque[tuple[Connection, bytes]] = deque()

    def ask(self, connection: Connection, reply: bytes) -> None:
        if self.places is not None and self.running >= self.places:
            self.waiting.append((connection, reply))
        else:
            self._begin(connection, reply)

    def _begin(self, connection: Connection, reply: bytes) -> None:
        self.running += 1
        asyncio.get_running_loop().call_later(self.latency, self._end, connection, reply)

    def _end(self, connection: Connection, reply: bytes) -> None:
        self.running -= 1
        self.reply_times.append(time.monotonic())
        connection.write(reply)
        if self.waiting:
            self._begin(*self.waiting.popleft())

    def metrics(self) -> bytes:
        figures = {
            "num_requests_running": self.running,
            "num_requests_waiting": len(self.waiting),
            "prompt_tokens_total": self.prompt_tokens,
            "generation_tokens_total": 30 * len(self.reply_times),
        }
        lines = (f'vllm:{name}{{engine="0",model_name="fixed"}} {value}\n' for name, value in figures.items())
        return page("".join(lines).encode())


class Connection(asyncio.Protocol):
    def __init__(self, places: Places, replies: Sequence[bytes], metrics: bool) -> None:
        self.places = places
        self.replies = replies
        self.has_metrics = metrics
        self.received = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is of no class of asyncio's

    def write(self, data: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = self.received[:end]
            at = head.lower().find(b"content-length:")
            length = int(head[at + 15 :].partition(b"\r\n")[0]) if at >= 0 else 0
            if len(self.received) < end + 4 + length:
                return
            body = self.received[end + 4 : end + 4 + length]
            self.received = self.received[end + 4 + length :]
            self._answer(*head.split(b" ", 2)[:2], body)

    def _answer(self, method: bytes, path: bytes, body: bytes) -> None:
        if method == b"POST" and path == b"/v1/chat/completions":
            one = zlib.crc32(body) % len(self.replies) if len(self.replies) > 1 else 0
            tokens = len(body) // 4
            self.places.prompt_tokens += tokens
            self.places.ask(self, self.replies[one].replace(b"%d" % PROMPT_TOKENS, b"%7d" % tokens))
        elif path == b"/v1/models":
            self.write(MODELS)
        elif path == b"/metrics" and self.has_metrics:
            self.write(self.places.metrics())
        elif path == b"/measured":
            self.write(response({"cpu_s": time.process_time(), "reply_times": self.places.reply_times}))
        else:
            self.write(NOT_FOUND)


async def main(options: argparse.Namespace) -> None:
    loop, ports = asyncio.get_running_loop(), []
    replies = WALKING if options.replicas else LOOKING
    for _ in range(options.replicas or 1):
        make = partial(Connection, Places(options.latency, options.places or None), replies, options.metrics)
        server = await loop.create_server(make, "127.0.0.1", 0, backlog=1024)
        ports.append(server.sockets[0].getsockname()[1])
    print(*ports, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("latency", type=float)
    parser.add_argument("places", type=int, nargs="?", default=0)
    parser.add_argument("--metrics", action="store_true")
    parser.add_argument("--replicas", type=int)
    uvloop.run(main(parser.parse_args()))
