"""The way in: no web pages, no strangers, so many connections and no more; and its address."""

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
    """Looks at every request before anything else does."""

    accepts: Callable[[str], bool] | None = None
    """Whether a token opens it; None: whoever is on this machine, without one."""
    hint: str = "give the token that the server printed: Authorization: Bearer TOKEN"

    def refusal(self, request: web.Request) -> web.HTTPException | None:
        """The reason why a request is turned away."""
        # A page in somebody's browser can send requests to 127.0.0.1; it cannot hide where it comes from.
        if "Origin" in request.headers:
            return web.HTTPForbidden(text="requests of web pages are not answered")
        if request.path == "/health":
            return None
        if self.accepts is None:
            if not is_loopback(_host(request)):
                return web.HTTPForbidden(text="this server answers to the addresses of this machine only")
        elif not self.accepts(given_token(request)):
            return web.HTTPUnauthorized(text=self.hint, headers={"WWW-Authenticate": "Bearer"})
        let_in(request)
        return None


def given_token(request: web.Request) -> str:
    """The one that the request has; '' without one."""
    return request.headers.get("Authorization", "").removeprefix("Bearer ")


def is_one_of(given: str, tokens: Iterable[str]) -> bool:
    """Takes as long for a token that is nearly right as for any other."""
    alike = [hmac.compare_digest(given.encode(errors="replace"), token.encode()) for token in tokens]
    return any(alike)


def is_loopback(host: str) -> bool:
    """Of a name, `localhost` alone: any other is resolved by somebody else."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host(request: web.Request) -> str:
    host = request.host
    bare = host if host.endswith("]") else host.rsplit(":", 1)[0]
    return bare.removeprefix("[").removesuffix("]")


FIRST_S = 10.0
"""Seconds that a connection has for a request that is let in."""
_strangers: dict[int, _Connection] = {}
"""By the identity of their transport those that nobody let in yet, of every server of this process, oldest first."""


def let_in(request: web.Request) -> None:
    """Its connection may stay: it has shown that it may come in."""
    if connection := _strangers.pop(id(request.transport), None):
        connection.timer.cancel()


class _Connection(asyncio.Protocol):
    """Hands everything on to `inner`, if there is room for one more connection."""

    timer: asyncio.TimerHandle
    _is_open = False

    def __init__(self, inner: asyncio.Protocol, crowd: _Crowd) -> None:
        self._inner, self._crowd = inner, crowd

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are no subclass
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
            # Later: aiohttp takes up a request that has just come, and fails once it knows that nobody waits for it.
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
    """The connections of one server: at most half of the files that this process may open, so that the run has room
    for its own. One more takes the place of the oldest that was not let in."""

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
    """Raises the limit of open files of this process as far as it may: the usual 1,024 are few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return (_MOST_FILES if soft == resource.RLIM_INFINITY else soft) // 2


def _http_log() -> logging.Logger:
    """What is no HTTP was answered with status 400; a stranger must not fill the log with it."""
    log = logging.getLogger("evalharness.http")
    log.filters = [lambda record: not (record.exc_info and isinstance(record.exc_info[1], BadHttpMessage))]
    return log


def require_address(host: str, port: int, flags: str) -> None:
    """Before minutes of other work. Raises UserError where nobody can listen there now; `flags` as of `listening`."""
    with system_errors(f"cannot listen on {host}:{port}", f"; choose another {flags}"):
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)


@asynccontextmanager
async def listening(
    application: web.Application,
    host: str,
    port: int,
    *,
    backlog: int = 128,
    flags: str,
    cancel_when_gone: bool = False,
) -> AsyncIterator[str]:
    """The server's URL. Raises UserError when the port is taken; `flags` are those that name another one.
    `cancel_when_gone`: what is done for a client is cancelled when its connection is lost."""
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
            # asyncio accepts as many as wait, at once, before any of them can be closed again.
            waiting = min(backlog, most // 4)
            server = await asyncio.get_running_loop().create_server(
                _Crowd(runner.server, most), host, port, backlog=waiting
            )
            undo.callback(server.close)
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.sockets[0].getsockname()[1]}"
