"""Refuse requests of web pages and requests without a token, limit the number of connections, and start the server."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import logging
import resource
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import cast

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage

from evalharness.base.errors import system_errors


@dataclass(frozen=True)
class Door:
    """Checks every request before the application gets it."""

    accepts: Callable[[str], bool] | None = None
    """Whether a token is valid; None: requests need no token, but must come to a local address."""
    hint: str = "give the token that the server printed: Authorization: Bearer TOKEN"

    def refusal(self, request: web.Request) -> web.HTTPException | None:
        """Return the error for a request that is refused; None if it is accepted."""
        # A page in a browser can send requests to 127.0.0.1, but the browser adds the page's origin.
        if "Origin" in request.headers:
            return web.HTTPForbidden(text="requests from web pages are refused")
        if request.path == "/health":
            return None
        if self.accepts is None:
            if not is_loopback(_host(request)):
                return web.HTTPForbidden(
                    text="this server accepts only requests to a local address (127.0.0.1)"
                )
        elif not self.accepts(read_token(request)):
            return web.HTTPUnauthorized(text=self.hint, headers={"WWW-Authenticate": "Bearer"})
        let_in(request)
        return None


def read_token(request: web.Request) -> str:
    """Return the token of a request; "" if it has none."""
    return request.headers.get("Authorization", "").removeprefix("Bearer ")


def is_one_of(given: str, tokens: Iterable[str]) -> bool:
    """Return whether `given` is one of the tokens. The time does not depend on how similar it is (timing attacks)."""
    alike = [hmac.compare_digest(given.encode(errors="replace"), token.encode()) for token in tokens]
    return any(alike)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine. The only accepted name is `localhost`: DNS could resolve another name."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host(request: web.Request) -> str:
    host = request.host
    bare = host if host.endswith("]") else host.rsplit(":", 1)[0]
    return bare.removeprefix("[").removesuffix("]")


FIRST_S = 10.0
"""A connection without an accepted request is closed after so many seconds."""
_strangers: dict[int, _Connection] = {}
"""Id of the transport -> connection without an accepted request, for all servers of this process, oldest first."""


def let_in(request: web.Request) -> None:
    """Keep the connection of an accepted request open."""
    if connection := _strangers.pop(id(request.transport), None):
        connection.timer.cancel()


class _Connection(asyncio.Protocol):
    """A connection; it forwards all events to `inner`, unless there are too many connections."""

    timer: asyncio.TimerHandle
    _is_open = False

    def __init__(self, inner: asyncio.Protocol, crowd: _Crowd) -> None:
        self._inner, self._crowd = inner, crowd

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's class is not a subclass
        if self._crowd.count >= self._crowd.most and not self._crowd.close_a_stranger():
            self.transport.abort()
            return
        self._is_open = True
        self._crowd.count += 1
        _strangers[id(transport)] = self
        self.timer = asyncio.get_running_loop().call_later(FIRST_S, self.close)
        self._inner.connection_made(transport)

    def close(self) -> None:
        self.connection_lost(None)
        self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if self._is_open:
            self._is_open = False
            self._crowd.count -= 1
            self.timer.cancel()
            if _strangers.get(id(self.transport)) is self:
                del _strangers[id(self.transport)]
            # Call it later: aiohttp may still start a request that has just arrived, and would fail with a lost client.
            asyncio.get_running_loop().call_soon(self._inner.connection_lost, error)

    def data_received(self, data: bytes) -> None:
        if self._is_open:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._is_open else None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


@dataclass
class _Crowd:
    """The connections of one server: at most half of the files that this process may open, so that the run can open
    its own files. A new connection above the limit replaces the oldest one without an accepted request."""

    make: Callable[[], asyncio.Protocol]
    most: int
    count: int = 0

    def __call__(self) -> _Connection:
        return _Connection(self.make(), self)

    def close_a_stranger(self) -> bool:
        stranger = next((each for each in _strangers.values() if each._crowd is self), None)
        if stranger is not None:
            stranger.close()
        return stranger is not None


_MOST_FILES = 1 << 16


def most_connections() -> int:
    """Raise this process's limit of open files, because the usual 1,024 are too few. Return half of the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return (_MOST_FILES if soft == resource.RLIM_INFINITY else soft) // 2


def _http_log() -> logging.Logger:
    """Return a log without messages that are not HTTP: the client gets status 400 and must not fill the log."""
    log = logging.getLogger("evalharness.http")
    log.filters = [lambda record: not (record.exc_info and isinstance(record.exc_info[1], BadHttpMessage))]
    return log


def require_address(host: str, port: int, flags: str) -> None:
    """Check the address before minutes of other work. Raise UserError if it is not free. `flags`: as in `listen`."""
    with system_errors(f"cannot listen on {host}:{port}", f"; choose another {flags}"):
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)


@asynccontextmanager
async def listen(
    application: web.Application,
    host: str,
    port: int,
    *,
    backlog: int = 128,
    flags: str,
    cancel_when_gone: bool = False,
) -> AsyncIterator[str]:
    """Start a server and yield its URL. Raise UserError if the port is in use; `flags`: options that choose another.
    `cancel_when_gone`: cancel the work for a client when its connection is lost."""
    runner = web.AppRunner(
        application,
        access_log=None,
        logger=_http_log(),
        shutdown_timeout=5.0,
        handler_cancellation=cancel_when_gone,
    )
    await runner.setup()
    async with AsyncExitStack() as undo:
        undo.push_async_callback(runner.cleanup)
        with system_errors(f"cannot listen on {host}:{port}", f"; choose another {flags}"):
            assert runner.server is not None
            most = most_connections()
            # asyncio accepts all waiting connections at once, before any of them can be closed again.
            waiting = min(backlog, most // 4)
            server = await asyncio.get_running_loop().create_server(
                _Crowd(runner.server, most), host, port, backlog=waiting
            )
            undo.callback(server.close)
        shown_host = f"[{host}]" if ":" in host else host
        yield f"http://{shown_host}:{server.sockets[0].getsockname()[1]}"
