"""`evalharness env serve` in a process of its own, as a trainer finds it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse
from command_line import command

COMPASS = ("compass", "--train-seeds", "0", "--validation-seeds", "1", "--allow-eval-tasks")
"""Compass has the same four goals under every seed; real families refuse this."""


@dataclass(frozen=True)
class EnvServer:
    url: str
    said: Sequence[str]
    """Lines on standard output before the address."""
    pid: int


def notes(environment: Mapping[str, str]) -> Path:
    """What the server writes on standard error."""
    return Path(environment["EVALHARNESS_HOME"]).parent / "env-server.log"


@contextmanager
def serving(
    environment: Mapping[str, str], *options: object, survives: bool = True, folder: Path | None = None
) -> Iterator[EnvServer]:
    """SIGTERM ends it, and it must end well. (Ctrl-C is ignored by what a shell started in the background.)

    `folder`: the current one, with the command `evalharness` in place of `python -m`.
    """
    start = command("env", "serve", *options, "--port", 0)
    if folder is not None:
        start[:3] = [str(Path(sys.executable).with_name("evalharness"))]
    # What it notes goes to a file: a pipe that nobody reads would fill up.
    log = notes(environment)
    with log.open("ab") as errors:
        server = subprocess.Popen(
            start,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=dict(environment),
        )
    try:
        assert server.stdout
        said: list[str] = []
        for line in server.stdout:
            if line.startswith("http"):
                break
            said.append(line.strip())
        else:
            raise AssertionError(f"it did not start: {said} {log.read_text()}")
        yield EnvServer(line.split()[0], said, server.pid)
        if survives:
            server.terminate()
            assert server.wait(120) == 128 + signal.SIGTERM
    finally:
        server.kill()
        server.wait()


class Talk:
    """A connection at the level of the protocol."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self.socket = socket

    async def ask(self, kind: str, /, **data: Any) -> dict[str, Any]:
        """The whole answer: `type` and `data`."""
        await self.socket.send_json({"type": kind, **({"data": data} if kind != "state" else {})})
        answer: dict[str, Any] = await self.socket.receive_json(timeout=60)
        return answer

    async def _observation(self, kind: str, /, **data: Any) -> dict[str, Any]:
        answer = await self.ask(kind, **data)
        assert answer["type"] == "observation", answer
        return dict(answer["data"])

    async def reset(self, **which: Any) -> dict[str, Any]:
        return await self._observation("reset", **which)

    async def step(self, text: str, **more: Any) -> dict[str, Any]:
        return await self._observation("step", text=text, **more)

    async def many(self, kind: str, **data: Any) -> Any:
        """The answer to a batched message. What an earlier client held is freed soon after it has left."""
        while (answer := await self.ask(kind, **data))["type"] == "error":
            assert answer["data"]["code"] == "CAPACITY_REACHED", answer
        return answer["data"]

    async def state(self) -> dict[str, Any]:
        return dict((await self.ask("state"))["data"])

    def vanish(self) -> None:
        """As a killed process does: no close handshake."""
        transport = self.socket._response.connection and self.socket._response.connection.transport
        assert transport is not None
        transport.abort()


async def connect(client: ClientSession, url: str, **more: Any) -> Talk:
    """Raises WSServerHandshakeError."""
    return Talk(await client.ws_connect(f"{url}/ws", **more))
