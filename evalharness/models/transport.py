"""How the bytes of a request reach an endpoint, and those of the answer come back.

No redirect is followed, so prompts go nowhere but to the server that was named. A kept connection on which bytes have
come that nobody asked for is closed instead of used: aiohttp 3.14 takes a reply that came on an idle connection for the
answer to the next request (its pool asks only whether the connection is open: 5 of the 18 attacks in
`tests/models/test_unasked.py`).
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
"""Bytes of one answer. 8,192 tokens are below 100 kB, a list of 4,000 models is below 1 MB."""
_CONNECT_S = 30.0
_KEEP_ALIVE = 4.0
"""Seconds for which an idle connection is kept. uvicorn (vLLM) and others close theirs after five: a request sent
on a connection that is just being closed fails, and only the server's side could tell whether it had been read."""
_REDIRECTS = (301, 302, 303, 307, 308)


def proxy_of(url: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name for a URL; this machine's own servers need none."""
    parts, proxies = urlsplit(url), getproxies()
    host, proxy = parts.hostname or "", proxies.get(parts.scheme) or proxies.get("all")
    local = host in ("localhost", "::1") or re.fullmatch(r"127(?:\.\d+){3}", host)
    if not proxy or local or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


Answered = tuple[int, Mapping[str, str], bytearray]
"""Status, headers, body."""


class _Connector(aiohttp.TCPConnector):
    """Gives a kept connection only where nothing has come on it since its last answer."""

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
    """Bytes that aiohttp has read already, or that still wait in the socket (as the end of the connection does)."""
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
        """`timeout` is seconds for one request, first byte to last; `headers` go with each."""
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
        """Return the URL of a route below the base, with the base's query (`?api-version=...`); `outside`: beside
        `/v1`."""
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
    ) -> Answered:
        """`path` and `outside` as in `url`; a body is JSON. Raises TryFailedError, and UserError if the server
        redirects."""
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
                        "prompts would leave for a server that nobody named; if that one is meant, name it: --model URL"
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
