"""The plain HTTP client against a real socket that answers as servers do, and as they should not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from evalharness.policy.plain_http import Answer, ConnectError, CutOffError, PlainHttp, TooLongError

Serve = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(*answers: bytes | Serve) -> AsyncIterator[tuple[PlainHttp, list[bytes], list[int]]]:
    """A client, the requests that came, and the connection each came on. An answer that is b"" ends the connection."""
    requests: list[bytes] = []
    connections: list[int] = []
    left = list(answers)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = max(connections, default=0) + 1
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            requests.append(head + await reader.readexactly(length))
            connections.append(number)
            answer = left.pop(0)
            if callable(answer):
                await answer(requests[-1], writer)
                break
            if not answer:
                break
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = PlainHttp(
        "127.0.0.1", port, "/v1/chat", {"Accept": "*/*"},
        connections=4, timeout=5.0, connect_timeout=5.0, keep_alive=4.0, answer_limit=1000,
    )  # fmt: skip
    try:
        yield client, requests, connections
    finally:
        client.close()
        server.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


async def test_a_request_is_one_post_and_the_connection_is_kept() -> None:
    async with serving(OK, OK) as (client, requests, connections):
        first = await client.post(b"body", {"X-Session-ID": "e1"})
        await client.post(b"", {})
    assert first == Answer(200, {"content-type": "application/json", "content-length": "2"}, b"{}")
    head, _, body = requests[0].partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"POST /v1/chat HTTP/1.1"
    assert {b"Accept: */*", b"X-Session-ID: e1", b"Content-Length: 4"} < set(head.split(b"\r\n"))
    assert body == b"body"
    assert connections == [1, 1]


@pytest.mark.parametrize("step", [1, 7, 1000])
async def test_an_answer_may_come_in_chunks_and_in_pieces(step: int) -> None:
    whole = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"
        b"5;name=value\r\nhello\r\n7\r\n, world\r\n0\r\nTrailer: 1\r\n\r\n"
    )

    async def in_pieces(request: bytes, writer: asyncio.StreamWriter) -> None:
        for at in range(0, len(whole), step):
            writer.write(whole[at : at + step])
            await writer.drain()
            await asyncio.sleep(0)

    async with serving(in_pieces) as (client, _, _):
        assert (await client.post(b"", {})).body == b"hello, world"


async def test_without_a_length_the_body_ends_with_the_connection() -> None:
    async def until_closed(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nall of it")

    async with serving(until_closed, OK) as (client, _, connections):
        assert (await client.post(b"", {})).body == b"all of it"
        await client.post(b"", {})
        assert connections == [1, 2]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\nhel",
        b"HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n",
        b"HTTP/1.1 200",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"",
    ],
)
async def test_what_is_cut_off_or_makes_no_sense_is_no_answer(answer: bytes) -> None:
    async def send(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    async with serving(send, OK) as (client, _, connections):
        with pytest.raises(CutOffError):
            await client.post(b"", {})
        assert (await client.post(b"", {})).status == 200
        assert connections == [1, 2]


async def test_an_answer_that_is_too_long_is_not_read_to_its_end() -> None:
    async def endless(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 2000)

    async with serving(endless) as (client, _, _):
        with pytest.raises(TooLongError):
            await client.post(b"", {})


async def test_an_answer_to_a_request_that_was_given_up_reaches_no_other() -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def late(request: bytes, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await answer.wait()
        writer.write(OK.replace(b"{}", b"[]"))

    async with serving(late, OK) as (client, _, _):
        given_up = asyncio.create_task(client.post(b"", {}))
        await asked.wait()
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        second = asyncio.create_task(client.post(b"", {}))
        answer.set()
        assert (await second).body == b"{}"


async def test_a_connection_that_was_closed_meanwhile_is_not_used_again() -> None:
    async def and_close(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)

    async with serving(and_close, OK) as (client, _, connections):
        await client.post(b"", {})
        while client._idle and client._idle[0].usable:
            await asyncio.sleep(0)
        assert (await client.post(b"", {})).status == 200
        assert connections == [1, 2]


async def test_a_second_answer_to_one_request_is_nobodys() -> None:
    async with serving(OK + OK.replace(b"{}", b"[]"), OK) as (client, _, connections):
        assert (await client.post(b"", {})).body == b"{}"
        assert (await client.post(b"", {})).body == b"{}"
        assert connections == [1, 2]


async def test_where_nobody_listens_there_is_no_connection() -> None:
    async with serving() as (client, _, _):
        pass
    with pytest.raises(ConnectError, match="cannot connect to"):
        await client.post(b"", {})
