"""A server under many connections that nobody let in: it has room for those that come with a token, and for itself."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession, WSMsgType, web

from evalharness.door import door
from evalharness.door.door import Door, is_one_of, listen
from evalharness.rl.wire import make_guard

TOKEN = "a token of sixteen"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
MOST = 8


async def _echo(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        await socket.send_str(message.data)
    return socket


@pytest.fixture
async def url(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    monkeypatch.setattr(door, "most_connections", lambda: MOST)
    application = web.Application(middlewares=[make_guard(Door(lambda given: is_one_of(given, [TOKEN])))])
    application.router.add_get("/ws", _echo)
    async with listen(application, "127.0.0.1", 0, flags="--port") as address:
        yield address


async def _idle(url: str) -> asyncio.StreamReader:
    host, _, port = url.removeprefix("http://").rpartition(":")
    reader, _ = await asyncio.open_connection(host, int(port))
    return reader


async def test_a_client_with_a_token_comes_in_past_any_number_of_idle_connections(url: str) -> None:
    idle = [await _idle(url) for _ in range(5 * MOST)]
    async with ClientSession(headers=HEADERS) as client, client.ws_connect(f"{url}/ws") as socket:
        await socket.send_str("first")
        assert await socket.receive_str() == "first"
        idle += [await _idle(url) for _ in range(5 * MOST)]
        await socket.send_str("still here")
        assert await socket.receive_str() == "still here"
        closed = [reader.at_eof() or reader.exception() for reader in idle]
        assert len(idle) - sum(map(bool, closed)) < MOST


async def test_a_client_without_room_is_refused_and_those_that_are_in_stay(url: str) -> None:
    async with ClientSession(headers=HEADERS) as client:
        sockets = [await client.ws_connect(f"{url}/ws") for _ in range(MOST)]
        reader = await _idle(url)
        assert await reader.read() == b""
        for socket in sockets:
            await socket.send_str("here")
            assert await socket.receive_str() == "here"
            await socket.close()


@pytest.mark.parametrize("begin", [b"", b"GET /ws HTT", b"GET /ws HTTP/1.1\r\nHost: x\r\n\r\n"])
async def test_a_connection_that_is_not_let_in_is_closed_in_time(
    begin: bytes, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "ACCEPT_TIMEOUT_S", 0.2)
    host, _, port = url.removeprefix("http://").rpartition(":")
    async with ClientSession(headers=HEADERS) as client, client.ws_connect(f"{url}/ws") as socket:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(begin)
        try:
            async with asyncio.timeout(20):
                while await reader.read(1 << 16):
                    pass
        except ConnectionError:
            pass
        await socket.send_str("it stays")
        assert (await socket.receive()).type == WSMsgType.TEXT


async def test_a_connection_that_is_closed_as_its_request_comes_leaves_no_traceback(url: str) -> None:
    loop = asyncio.get_running_loop()
    errors: list[dict[str, object]] = []
    loop.set_exception_handler(lambda _, context: errors.append(context))
    await _idle(url)
    while not door._pending:
        await asyncio.sleep(0)
    (connection,) = door._pending.values()
    await asyncio.sleep(0)  # aiohttp waits for the request now
    connection.data_received(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
    connection.close()
    del connection
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()
    assert errors == []
