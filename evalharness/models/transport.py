"""Send the bytes of a request to an endpoint, and receive those of the answer.

Redirects are not followed, so prompts reach only the server that the user named. An idle connection that has received
bytes is closed and not used again: aiohttp 3.14 checks only that an idle connection is open, and would use these bytes
as the answer to the next request (5 of the 18 attacks in `tests/models/test_unasked.py`).
"""

from __future__ import annotations

import re
import select
import weakref
from collections.abc import Mapping
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.tracing import Trace

from evalharness.base.errors import UserError
from evalharness.base.redaction import know
from evalharness.base.version import __version__
from evalharness.models.completion import TryFailedError

_LIMIT = 8 * 1024 * 1024
"""Maximum bytes of one answer. 8,192 tokens have less than 100 kB, a list of 4,000 models less than 1 MB."""
_CONNECT_S = 30.0
_KEEP_ALIVE = 4.0
"""Seconds for which an idle connection is kept. uvicorn (vLLM) and others close idle connections after five seconds. A
request on a connection that is being closed fails, and the client cannot know whether the server has read it."""
_REDIRECTS = (301, 302, 303, 307, 308)


def proxy_of(url: str) -> str | None:
    """Return the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name for a URL; servers on this machine need none."""
    parts, proxies = urlsplit(url), getproxies()
    host, proxy = parts.hostname or "", proxies.get(parts.scheme) or proxies.get("all")
    local = host in ("localhost", "::1") or re.fullmatch(r"127(?:\.\d+){3}", host)
    if not proxy or local or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


RawAnswer = tuple[int, Mapping[str, str], bytearray]
"""Status, headers, body."""


class _Connector(aiohttp.TCPConnector):
    """Reuses an idle connection only if it has received nothing since its last answer."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit, keepalive_timeout=_KEEP_ALIVE)
        self._used: weakref.WeakSet[ResponseHandler] = weakref.WeakSet()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            assert protocol is not None
            if protocol not in self._used:
                self._used.add(protocol)
                return connection
            if not _has_unread(protocol):
                return connection
            connection.close()


def _has_unread(protocol: ResponseHandler) -> bool:
    """Return whether the connection has unread bytes, in aiohttp or in the socket (its end also counts)."""
    if protocol.should_close or protocol.transport is None:
        return True
    waiting = select.poll()
    waiting.register(protocol.transport.get_extra_info("socket"), select.POLLIN)
    return bool(waiting.poll(0))


class Transport:
    """Sends requests to one server. Make it inside a running event loop; `close` last."""

    def __init__(
        self,
        base_url: str,
        key: str | None,
        *,
        connections: int,
        timeout: float,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`timeout` is the seconds for one request, from first byte to last; every request has `headers`."""
        know(key)
        self.base_url = base_url
        self.has_key = key is not None or bool(headers)
        self._proxy = proxy_of(base_url)
        self._timeout = timeout
        self._connector = _Connector(limit=connections)
        self._http = aiohttp.ClientSession(
            headers={
                "User-Agent": f"evalharness/{__version__}",
                **({"Authorization": f"Bearer {key}"} if key else {}),
                **(headers or {}),
            },
            connector=self._connector,
        )

    async def close(self) -> None:
        await self._http.close()

    def url(self, path: str, *, outside: bool = False) -> str:
        """Return the URL of a route, with the base's query (`?api-version=...`); `outside`: without `/v1`."""
        address, mark, query = self.base_url.partition("?")
        address = address.rstrip("/")
        return (address.removesuffix("/v1") if outside else address) + path + mark + query

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        outside: bool = False,
        timeout: float | None = None,
    ) -> RawAnswer:
        """Send a request and return the answer. `path` and `outside` as in `url`; `body` is JSON. Raises
        TryFailedError, and UserError if the server redirects."""
        url = self.url(path, outside=outside)
        given = {"Content-Type": "application/json"} if body is not None else {}
        try:
            async with self._http.request(
                method,
                url,
                data=body,
                headers={**given, **(headers or {})},
                allow_redirects=False,
                proxy=self._proxy,
                timeout=aiohttp.ClientTimeout(total=timeout or self._timeout, sock_connect=_CONNECT_S),
            ) as response:
                if response.status in _REDIRECTS:
                    where = response.headers.get("Location", "")[:200]
                    raise UserError(
                        f"{url} redirects to {where!r} (HTTP {response.status}); redirects are not followed, since "
                        "prompts would go to a server that the user did not name; to use that server: --model URL"
                    )
                raw = bytearray()
                async for chunk in response.content.iter_any():
                    raw += chunk
                    if len(raw) > _LIMIT:
                        raise TryFailedError("too_long", f"an answer of more than {_LIMIT} bytes")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TryFailedError(_kind(error), f"{type(error).__name__}: {error}".rstrip(": ")) from None
        return response.status, response.headers, raw


def _kind(error: Exception) -> str:
    match error:
        case aiohttp.ClientConnectorError():
            return "connect"
        case TimeoutError():
            return "timeout"
        case _:
            return "truncated"
