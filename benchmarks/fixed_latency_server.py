"""An OpenAI-compatible chat server that answers every request after the same time, for benchmarks of the harness.

    python benchmarks/fixed_latency_server.py LATENCY_SECONDS [PLACES [metrics]]

Prints its port. It works on PLACES requests at once, as a real server does that is saturated there, and lets others
wait in the order they came; without PLACES (or with 0) on any number. `metrics`: a page `/metrics` says how many
requests run and wait, in vLLM's words; else there is no such page. It says the same harmless thing to all and does not
read the conversation, so that it takes as little as possible of the cores it shares with what is measured. `GET /cpu`
gives the CPU seconds that it has taken: they are none of the harness's.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from typing import cast

import uvloop

ANSWER = json.dumps(
    {
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Thought: I look around first.\nAction: look"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 1500, "completion_tokens": 30},
    }
).encode()


def response(body: bytes, kind: str = "application/json", status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


REPLY = response(ANSWER)
MODELS = response(json.dumps({"data": [{"id": "fixed"}]}).encode())
NOT_FOUND = response(b"{}", status="404 Not Found")


class Places:
    """Requests that are worked on, and those that wait."""

    def __init__(self, latency: float, places: int | None) -> None:
        self.latency = latency
        self.places = places
        self.running = 0
        self.answered = 0
        self.waiting: deque[Connection] = deque()

    def ask(self, connection: Connection) -> None:
        if self.places is not None and self.running >= self.places:
            self.waiting.append(connection)
        else:
            self._begin(connection)

    def _begin(self, connection: Connection) -> None:
        self.running += 1
        asyncio.get_running_loop().call_later(self.latency, self._end, connection)

    def _end(self, connection: Connection) -> None:
        self.running -= 1
        self.answered += 1
        connection.write(REPLY)
        if self.waiting:
            self._begin(self.waiting.popleft())

    def metrics(self) -> bytes:
        figures = {
            "num_requests_running": self.running,
            "num_requests_waiting": len(self.waiting),
            "prompt_tokens_total": 1500 * self.answered,
            "generation_tokens_total": 30 * self.answered,
        }
        lines = (f'vllm:{name}{{engine="0",model_name="fixed"}} {value}\n' for name, value in figures.items())
        return response("".join(lines).encode(), "text/plain")


class Connection(asyncio.Protocol):
    def __init__(self, places: Places, metrics: bool) -> None:
        self.places = places
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
            self.received = self.received[end + 4 + length :]
            self._answer(*head.split(b" ", 2)[:2])

    def _answer(self, method: bytes, path: bytes) -> None:
        if method == b"POST" and path == b"/v1/chat/completions":
            self.places.ask(self)
        elif path == b"/v1/models":
            self.write(MODELS)
        elif path == b"/metrics" and self.has_metrics:
            self.write(self.places.metrics())
        elif path == b"/cpu":
            self.write(response(json.dumps(time.process_time()).encode()))
        else:
            self.write(NOT_FOUND)


async def main(latency: float, places: int | None, metrics: bool) -> None:
    work = Places(latency, places)
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(work, metrics), "127.0.0.1", 0, backlog=1024
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(float(sys.argv[1]), int((sys.argv[2:] or ["0"])[0]) or None, "metrics" in sys.argv[3:]))
