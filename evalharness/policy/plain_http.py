"""POST over plain HTTP/1.1 on kept connections: all that a chat request needs, at a third of aiohttp's CPU time.

No TLS, no redirects, no cookies, no proxies and no compression. Who asks finds out with a general client whether the
server wants any of these, and stays with that client then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

_HEAD_LIMIT = 64 * 1024
"""Bytes of a status line with its headers."""


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
        self._received = b""
        self._head: tuple[int, dict[str, str]] | None = None
        """Status and headers of the answer that is being read."""
        self._length: int | None = None
        """Bytes of its body; None where it is in chunks, or ends with the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is of no class of asyncio's

    def ask(self, request: bytes) -> asyncio.Future[Answer]:
        assert self._transport is not None
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
        self._received = self._received + data if self._received else data
        try:
            self._read(ended=False)
        except (CutOffError, TooLongError) as error:
            self._fail(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        if self._waiter is None or self._waiter.done():
            return
        try:
            if self._head is not None:
                self._read(ended=True)
        except (CutOffError, TooLongError) as error:
            self._fail(error)
        else:
            self._fail(
                CutOffError(f"the connection was closed{f' ({exc})' if exc else ''} before the answer")
            )

    def _fail(self, error: Exception) -> None:
        self.close()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    def _read(self, *, ended: bool) -> None:
        while self._head is None:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                if len(self._received) > _HEAD_LIMIT:
                    raise CutOffError("the answer begins with no HTTP headers")
                return
            head = _parse_head(self._received[:end])
            self._received = self._received[end + 4 :]
            if head[0] >= 200:  # else the server says that it goes on
                self._head, self._length = head, _length(*head)
        status, headers = self._head
        if len(self._received) > self._limit:
            raise TooLongError
        if self._length is not None:
            if len(self._received) < self._length:
                if ended:
                    raise CutOffError("the connection was closed in the middle of the answer")
                return
            body, rest = self._received[: self._length], self._received[self._length :]
        elif "chunked" in headers.get("transfer-encoding", "").lower():
            chunks = _parse_chunks(self._received)
            if chunks is None:
                if ended:
                    raise CutOffError("the connection was closed in the middle of the answer")
                return
            body, rest = chunks
        elif ended:
            body, rest = self._received, b""
        else:
            return
        if ended or rest or headers.get("connection", "").lower() == "close":
            self.close()
        self._received, self._head = b"", None
        assert self._waiter is not None
        self._waiter.set_result(Answer(status, headers, body))


def _parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    """(status, headers)"""
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
        raise CutOffError(f"not HTTP/1.1: {first[:80]!r}")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if version == "HTTP/1.0":
        headers.setdefault("connection", "close")
    return int(rest[:3]), headers


def _length(status: int, headers: Mapping[str, str]) -> int | None:
    if status in (204, 304):
        return 0
    if "transfer-encoding" in headers:
        return None
    length = headers.get("content-length")
    if length is None:
        return None
    if not length.isdecimal():
        raise CutOffError(f"Content-Length is {length!r}")
    return int(length)


def _parse_chunks(data: bytes) -> tuple[bytes, bytes] | None:
    """(body, what follows it); None while the last chunk has not come."""
    parts, at = [], 0
    while True:
        end = data.find(b"\r\n", at)
        if end < 0:
            return None
        try:
            size = int(data[at:end].partition(b";")[0], 16)
        except ValueError:
            raise CutOffError(f"a chunk of length {data[at:end][:20]!r}") from None
        at = end + 2
        if size == 0:
            break
        if len(data) < at + size + 2:
            return None
        parts.append(data[at : at + size])
        at += size + 2
    # Trailers, and the empty line that ends them.
    if data[at : at + 2] == b"\r\n":
        return b"".join(parts), data[at + 2 :]
    end = data.find(b"\r\n\r\n", at)
    return None if end < 0 else (b"".join(parts), data[end + 4 :])


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
