"""POST over plain HTTP/1.1 on kept connections: all that a chat request needs, in less CPU time than aiohttp's.
httptools (llhttp, which uvicorn and Node use) reads the answers.

No TLS, no redirects, no cookies, no proxies and no compression. Who asks finds out with a general client whether the
server wants any of these, and stays with that client then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import httptools


class ConnectError(OSError):
    """No connection could be made."""


class CutOffError(OSError):
    """The connection ended, or made no sense, before the whole answer was there."""


class TooLongError(Exception):
    """The answer has more bytes than are wanted."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """By their names in lower case; of several with one name the last."""
    body: bytes


class _Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self, limit: int) -> None:
        self.idle_since = 0.0
        self.usable = True
        self._limit = limit
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._begin()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is of no class of asyncio's

    def ask(self, request: bytes) -> asyncio.Future[Answer]:
        assert self._transport is not None
        self._begin()
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._waiter

    def close(self) -> None:
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._waiter.done():
            self.close()  # nobody asked
            return
        self._size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(CutOffError(f"not HTTP/1.1: {error}"))
        else:
            if not self._waiter.done() and self._size > self._limit:
                self._fail(TooLongError())

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        if self._waiter is None or self._waiter.done():
            return
        if self._whole_at_the_end:
            self.on_message_complete()
        else:
            reason = f" ({exc})" if exc else ""
            self._fail(CutOffError(f"the connection was closed{reason} before the whole answer"))

    def _begin(self) -> None:
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._size = 0
        self._whole_at_the_end = False
        """The answer says nothing of its length: it ends with the connection."""

    def _fail(self, error: Exception) -> None:
        self.close()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    # What the parser calls.

    def on_message_begin(self) -> None:
        if self._waiter is None or self._waiter.done():
            self.close()  # a second answer to one request

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._whole_at_the_end = self._parser.get_status_code() >= 200 and not (
            self._headers.keys() & {"content-length", "transfer-encoding"}
        )

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:  # the server says that it goes on
            self._begin()
            return
        if not self._parser.should_keep_alive():
            self.close()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(Answer(status, self._headers, bytes(self._body)))


class PlainHttp:
    """Connections to one address."""

    def __init__(
        self,
        host: str,
        port: int,
        path: str,
        headers: Mapping[str, str],
        *,
        connections: int,
        timeout: float,
        connect_timeout: float,
        keep_alive: float,
        answer_limit: int,
    ) -> None:
        """Times in seconds; `keep_alive` is how long an idle connection is used again; `answer_limit` is bytes."""
        self._host = host
        self._port = port
        shown = f"[{host}]" if ":" in host else host
        lines = [f"POST {path} HTTP/1.1", f"Host: {shown}:{port}", *(f"{k}: {v}" for k, v in headers.items())]
        self._head = "\r\n".join(lines).encode("latin-1")
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._keep_alive = keep_alive
        self._answer_limit = answer_limit
        self._places = asyncio.Semaphore(connections)
        self._idle: list[_Connection] = []

    async def post(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Raises ConnectError, CutOffError, TooLongError, TimeoutError."""
        more = "".join(f"\r\n{name}: {value}" for name, value in headers.items())
        request = b"%b%b\r\nContent-Length: %d\r\n\r\n%b" % (
            self._head,
            more.encode("latin-1"),
            len(body),
            body,
        )
        async with asyncio.timeout(self._timeout), self._places:
            connection = self._take() or await self._connect()
            try:
                answer = await connection.ask(request)
            except BaseException:
                connection.close()  # cancelled, perhaps: what still comes belongs to no request
                raise
        if connection.usable:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        return answer

    def _take(self) -> _Connection | None:
        """The connection used last; those idle for too long are closed by the server, perhaps at this very moment."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and now - connection.idle_since < self._keep_alive:
                return connection
            connection.close()
        return None

    async def _connect(self) -> _Connection:
        try:
            async with asyncio.timeout(self._connect_timeout):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(self._answer_limit), self._host, self._port
                )
        except TimeoutError:
            raise
        except OSError as error:
            raise ConnectError(f"cannot connect to {self._host}:{self._port}: {error}") from None
        return connection

    def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()
