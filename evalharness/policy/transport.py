"""How a request's bytes reach a chat endpoint: through aiohttp at first, on plain connections where those will do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from evalharness._version import __version__
from evalharness.policy.completion import TryFailedError
from evalharness.policy.plain_http import Answer, ConnectError, PlainHttp, TooLongError

if TYPE_CHECKING:
    import aiohttp

_REPLY_LIMIT = 8 * 1024 * 1024
"""Bytes of one answer. 8,192 tokens are below 100 kB; a server that sends more is broken."""
_CONNECT_S = 30.0
_KEEP_ALIVE = 4.0
"""Seconds for which an idle connection is kept. uvicorn (vLLM) and others close theirs after five: a request sent
on a connection that is just being closed fails, and only the server's side could tell whether it had been read."""

Answered = tuple[int, Mapping[str, str], bytes | bytearray]
"""Status, headers, body."""


class Transport:
    """`open` first, `close` last. `settle` once a first answer has come: where the server is plain HTTP, has not
    redirected and gave no cookie, `PlainHttp` takes over."""

    def __init__(self, headers: Mapping[str, str], *, connections: int, timeout: float) -> None:
        self._headers = dict(headers)
        self._connections = connections
        self._timeout = timeout
        self._http: aiohttp.ClientSession | None = None
        self._plain: PlainHttp | None = None
        self._wants_more = False
        """The server has shown that it wants what `PlainHttp` has not."""

    async def open(self) -> None:
        import aiohttp  # a fifth of a second of CPU, which scripted runs do not wait for

        self._http = aiohttp.ClientSession(
            headers=self._headers,
            connector=aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=_KEEP_ALIVE),
            timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=_CONNECT_S),
        )

    @property
    def http(self) -> aiohttp.ClientSession:
        if self._http is None:
            raise RuntimeError("open() first")
        return self._http

    def settle(self, url: str) -> None:
        """`url` is what is posted to from now on."""
        from yarl import URL

        where = URL(url)
        if self._wants_more or where.scheme != "http" or where.user is not None or not where.raw_host:
            return
        self._plain = PlainHttp(
            where.raw_host,
            where.port or 80,
            where.raw_path_qs,
            {
                "Accept": "*/*",
                "Content-Type": "application/json",
                "User-Agent": f"evalharness/{__version__}",
                **self._headers,
            },
            connections=self._connections,
            timeout=self._timeout,
            connect_timeout=_CONNECT_S,
            keep_alive=_KEEP_ALIVE,
            answer_limit=_REPLY_LIMIT,
        )

    async def close(self) -> None:
        if self._plain is not None:
            self._plain.close()
            self._plain = None
        if self._http is not None:
            await self._http.close()

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answered:
        """Raises TryFailedError."""
        if self._plain is not None:
            answer = await _plainly(self._plain, body, headers)
            if not _needs_general_client(answer):
                # Only a failure's headers are read.
                said = {} if answer.status == 200 else {k.title(): v for k, v in answer.headers.items()}
                return answer.status, said, answer.body
            self._wants_more, self._plain = True, None
        return await self._generally(url, body, headers)

    async def _generally(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answered:
        import aiohttp

        try:
            async with self.http.post(
                url, data=body, headers={"Content-Type": "application/json", **headers}
            ) as response:
                raw = bytearray()
                async for chunk in response.content.iter_any():
                    raw += chunk
                    if len(raw) > _REPLY_LIMIT:
                        raise _too_long()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TryFailedError(_kind(error), f"{type(error).__name__}: {error}".rstrip(": ")) from None
        self._wants_more = self._wants_more or bool(response.history or response.cookies)
        return response.status, response.headers, raw


async def _plainly(plain: PlainHttp, body: bytes, headers: Mapping[str, str]) -> Answer:
    try:
        return await plain.post(body, headers)
    except TooLongError:
        raise _too_long() from None
    except ConnectError as error:
        raise TryFailedError("connect", str(error)) from None
    except TimeoutError:
        raise TryFailedError("timeout", "TimeoutError") from None
    except OSError as error:
        raise TryFailedError("truncated", str(error)) from None


def _needs_general_client(answer: Answer) -> bool:
    headers = answer.headers
    return 300 <= answer.status < 400 or "set-cookie" in headers or "content-encoding" in headers


def _too_long() -> TryFailedError:
    return TryFailedError("too_long", f"an answer of more than {_REPLY_LIMIT} bytes")


def _kind(error: Exception) -> str:
    import aiohttp

    match error:
        case aiohttp.ClientConnectorError():
            return "connect"
        case TimeoutError():
            return "timeout"
        case _:
            return "truncated"
