"""Who may come in: no web pages, no strangers."""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from aiohttp import web

from evalharness.base.errors import UserError


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
