"""Several OpenAI-compatible chat servers in one process, for benchmarks of the harness itself.

    python benchmarks/replicas_server.py REPLICAS PLACES LATENCY_SECONDS

Prints a port for each. Every one works on PLACES requests at once and lets others wait in the order they came. Replies
are short and chosen by what was asked, so that episodes differ and are the same in every run. The protocol is read by
hand: a web framework would take as much of the cores as what is measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
import zlib
from collections import deque

import uvloop

REPLIES = ("Thought: on\nAction: go right", "Thought: back\nAction: go left")
MODELS = json.dumps({"data": [{"id": "fixed", "max_model_len": 8192}]}).encode()


def _completion(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    return json.dumps(
        {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 200, "completion_tokens": 8},
        }
    ).encode()


ANSWERS = [_completion(text) for text in REPLIES]


class Replica:
    """One server's places."""

    def __init__(self, places: int, latency: float) -> None:
        self._free = places
        self._latency = latency
        self._waiting: deque[tuple[asyncio.Transport, bytes]] = deque()

    def ask(self, to: asyncio.Transport, answer: bytes) -> None:
        if self._free:
            self._free -= 1
            asyncio.get_running_loop().call_later(self._latency, self._done, to, answer)
        else:
            self._waiting.append((to, answer))

    def _done(self, to: asyncio.Transport, answer: bytes) -> None:
        respond(to, answer)
        self._free += 1
        if self._waiting:
            self.ask(*self._waiting.popleft())


def respond(to: asyncio.Transport, body: bytes, status: bytes = b"200 OK") -> None:
    if not to.is_closing():
        to.write(
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
            % (status, len(body), body)
        )


class Connection(asyncio.Protocol):
    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._read = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._to: asyncio.Transport = transport  # type: ignore[assignment]  # uvloop's is no subclass

    def data_received(self, data: bytes) -> None:
        self._read += data
        while (end := self._read.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._read[:end]).lower()
            _, found, rest = head.partition(b"content-length:")
            length = int(rest.partition(b"\r\n")[0]) if found else 0
            if len(self._read) < end + 4 + length:
                return
            body = bytes(self._read[end + 4 : end + 4 + length])
            del self._read[: end + 4 + length]
            if b"chat/completions" in head.partition(b"\r\n")[0]:
                self._replica.ask(self._to, ANSWERS[zlib.crc32(body) % len(ANSWERS)])
            elif b"/models" in head.partition(b"\r\n")[0]:
                respond(self._to, MODELS)
            else:
                respond(self._to, b"{}", b"404 Not Found")


async def main(replicas: int, places: int, latency: float) -> None:
    loop = asyncio.get_running_loop()
    servers = []
    for _ in range(replicas):
        replica = Replica(places, latency)
        servers.append(
            await loop.create_server(lambda r=replica: Connection(r), "127.0.0.1", 0, backlog=1024)
        )
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
