"""Refuse HTTP requests from web pages and requests without a valid token; limit the number of connections."""

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
    """The access rules of a server. Every request is checked before its handler runs."""

    accepts: Callable[[str], bool] | None = None
    """Return whether a token is valid. None: requests need no token, but their Host must be a loopback address."""
    hint: str = "give the token that the server printed: Authorization: Bearer TOKEN"

    def find_refusal(self, request: web.Request) -> web.HTTPException | None:
        """Return the error for a request that is refused; None if it is accepted."""
        # Browsers let any web page send requests to 127.0.0.1, but they add the header Origin to such requests.
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
        keep_open(request)
        return None


def read_token(request: web.Request) -> str:
    """Return the bearer token of a request; "" if the request has no token."""
    return request.headers.get("Authorization", "").removeprefix("Bearer ")


def is_one_of(given: str, tokens: Iterable[str]) -> bool:
    """Return whether `given` is one of the tokens. Similar tokens do not take longer, which prevents timing attacks."""
    alike = [hmac.compare_digest(given.encode(errors="replace"), token.encode()) for token in tokens]
    return any(alike)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine. No name except `localhost` is accepted: DNS may map it to any address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host(request: web.Request) -> str:
    host = request.host
    bare = host if host.endswith("]") else host.rsplit(":", 1)[0]
    return bare.removeprefix("[").removesuffix("]")


ACCEPT_TIMEOUT_S = 10.0
"""Seconds after which a connection is closed if it has sent no accepted request."""
_pending: dict[int, _Connection] = {}
"""Id of transport -> connection without an accepted request, oldest first, of all servers of this process."""


def keep_open(request: web.Request) -> None:
    """Cancel the timeout of a connection that has sent an accepted request."""
    if connection := _pending.pop(id(request.transport), None):
        connection.timer.cancel()


class _Connection(asyncio.Protocol):
    """A client's connection to the web server. It forwards all events to `inner`, aiohttp's protocol, until its end."""

    timer: asyncio.TimerHandle
    _is_open = False

    def __init__(self, inner: asyncio.Protocol, limit: _ConnectionLimit) -> None:
        self._inner, self._limit = inner, limit

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transport is no subclass
        if self._limit.count >= self._limit.most and not self._limit.close_oldest_pending():
            self.transport.abort()
            return
        self._is_open = True
        self._limit.count += 1
        _pending[id(transport)] = self
        self.timer = asyncio.get_running_loop().call_later(ACCEPT_TIMEOUT_S, self.close)
        self._inner.connection_made(transport)

    def close(self) -> None:
        self.connection_lost(None)
        self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if self._is_open:
            self._is_open = False
            self._limit.count -= 1
            self.timer.cancel()
            if _pending.get(id(self.transport)) is self:
                del _pending[id(self.transport)]
            # Call it later: aiohttp fails if the connection is lost before it has started a request that just arrived.
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
class _ConnectionLimit:
    """Limits the connections of one server. Above the limit, a new connection replaces the oldest connection that has
    sent no accepted request. If there is no such connection, the new one is refused."""

    make: Callable[[], asyncio.Protocol]
    most: int
    count: int = 0

    def __call__(self) -> _Connection:
        return _Connection(self.make(), self)

    def close_oldest_pending(self) -> bool:
        oldest = next((each for each in _pending.values() if each._limit is self), None)
        if oldest is not None:
            oldest.close()
        return oldest is not None


_MOST_FILES = 1 << 16


def most_connections() -> int:
    """Raise this process's limit of open files, usually 1,024. Return half of it; the run uses the other half."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return (_MOST_FILES if soft == resource.RLIM_INFINITY else soft) // 2


def _http_log() -> logging.Logger:
    """Return a log that drops errors about requests that are not HTTP: strangers could fill the log with them."""
    log = logging.getLogger("evalharness.http")
    log.filters = [lambda record: not (record.exc_info and isinstance(record.exc_info[1], BadHttpMessage))]
    return log


def require_address(host: str, port: int, flags: str) -> None:
    """Raise UserError if the address is in use; call it before minutes of other work. `flags`: see `listen`."""
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
    """Start a server and yield its URL. Raise UserError if the port is in use, and name the options that change it
    (`flags`). `cancel_when_gone`: cancel a handler when the connection of its client is lost."""
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
            # asyncio accepts all waiting connections at once, before the limit can close any of them.
            waiting = min(backlog, most // 4)
            server = await asyncio.get_running_loop().create_server(
                _ConnectionLimit(runner.server, most), host, port, backlog=waiting
            )
            undo.callback(server.close)
        shown_host = f"[{host}]" if ":" in host else host
        yield f"http://{shown_host}:{server.sockets[0].getsockname()[1]}"
