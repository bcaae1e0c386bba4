"""The way in: no web pages, no strangers, so many clients and no more; and the address that it is at."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage

from evalharness.base.errors import UserError, system_errors

WAIT_S = 5.0
"""Seconds that a client waits for a session of another to end; OpenEnv's client gives up after 10."""


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
            return None
        if not self.accepts(given_token(request)):
            return web.HTTPUnauthorized(text=self.hint, headers={"WWW-Authenticate": "Bearer"})
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


def token_of(variable: str, *, needed: bool) -> str | None:
    """The one that the environment variable has; else a new one where one is needed. Raises UserError."""
    given = os.environ.get(variable, "").strip()
    if given and len(given) < 16:
        raise UserError(f"{variable} has {len(given)} characters; give at least 16, or none and one is made")
    return given or (secrets.token_urlsafe(24) if needed else None)


class FullError(Exception):
    """All sessions are taken, and as many as may are waiting, or this one has waited long enough."""


class Gate:
    def __init__(self, sessions: int, waiting: int) -> None:
        self.sessions, self.most_waiting = sessions, waiting
        self.open = 0
        self.waiting = 0
        self.refused = 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[None]:
        """Raises FullError."""
        await self._enter()
        try:
            yield
        finally:
            await self.give_back(1)

    def claim(self, count: int) -> None:
        """So many sessions more for a client that is in: at once or not at all, because one that waits with half a
        group keeps others from theirs. Raises FullError."""
        free = self.sessions - self.open
        if count > free:
            self._refuse(f"{count} more episodes, but only {free} of {self.sessions} sessions are free")
        self.open += count

    async def give_back(self, count: int) -> None:
        self.open -= count
        async with self._changed:
            self._changed.notify_all()

    async def _enter(self) -> None:
        if self.open >= self.sessions:
            if self.waiting >= self.most_waiting:
                self._refuse(
                    f"all {self.sessions} sessions are taken and {self.waiting} clients wait for one"
                )
            self.waiting += 1
            try:
                async with asyncio.timeout(WAIT_S), self._changed:
                    await self._changed.wait_for(lambda: self.open < self.sessions)
                    self.open += 1
                    return
            except TimeoutError:
                self._refuse(f"all {self.sessions} sessions are taken; none ended within {WAIT_S:.0f} s")
            finally:
                self.waiting -= 1
        self.open += 1

    def _refuse(self, why: str) -> None:
        self.refused += 1
        raise FullError(why)


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
    try:
        with system_errors(f"cannot listen on {host}:{port}", f"; choose another {flags}"):
            await web.TCPSite(runner, host, port, backlog=backlog).start()
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
