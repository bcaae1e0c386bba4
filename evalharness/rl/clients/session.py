"""Connect to `evalharness env serve`: `AsyncSession` for asyncio, `Session` for synchronous code."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

T = TypeVar("T")
TOKEN = "EVALHARNESS_ENV_TOKEN"
"""Environment variable with the server's token, if the server needs one."""
_BUSY = 429
_FULL = "CAPACITY_REACHED"
_AGAIN_S = 0.5
_MOST_BYTES = 1_900_000
"""Largest size in bytes of the episodes or replies in one message; the server accepts messages of 2 MiB."""
_UNDER_WAY = 64
"""Number of episodes of one message that the server resets or steps at the same time."""
_OPTIONS: dict[str, Any] = {"open_timeout": 30, "max_size": None, "compression": None, "proxy": None}

_LATE = "no answer in time: the connection is closed, and with it its episodes"


class SessionError(RuntimeError):
    """The server refused a request, or the connection failed."""


class FullError(SessionError):
    """The server has too few free sessions for the group."""


@dataclass(frozen=True)
class StepResult:
    """The server's answer to `reset` or `step`."""

    text: str
    """Content of the last of `messages`: the task's prompt after a reset, the observation after a step."""
    messages: list[dict[str, str]]
    """Messages to append to the conversation; after a reset, the system message and the first user message."""
    kept: str | None
    """The model's last reply as an evaluation puts it in the conversation, for example without reasoning."""
    done: bool
    reward: float
    admissible: list[str] | None = None
    """The valid actions, only in an episode with the option `bare`."""


def tasks(url: str, split: str = "train", *, token: str | None = None) -> list[dict[str, Any]]:
    """Return all tasks of a split, with the keys `id`, `goal`, `family`, `kind`, `difficulty`, `system_prompt`, ..."""
    (name,) = _http(url, "/list_environments", None, token)
    listed: list[dict[str, Any]] = _http(url, f"/{name}/tasks", {"split": split}, token)["tasks"]
    return listed


class AsyncSession:
    """Plays episodes: call `reset`, then `step` with each complete reply of the model until `done`. Use it in `async
    with`."""

    def __init__(
        self, url: str, *, token: str | None = None, patience_s: float = 120.0, timeout_s: float = 120.0
    ) -> None:
        """While all sessions of the server are taken, retry for `patience_s` seconds. Wait `timeout_s` seconds for an
        answer, multiplied by the number of batches of 64 episodes in the request."""
        self._url, self._token = url, token
        self._patience_s, self._timeout_s = patience_s, timeout_s
        self._socket: ClientConnection | None = None

    async def reset(self, **which: Any) -> StepResult:
        """Begin an episode. `index`, `task_id`, `split`, `seed`, `family` and `kind` choose the task; without them the
        server takes the next one. Other options: `reward`, `episode_id`, `bare`."""
        return _step_result(await self._ask({"type": "reset", "data": which}))

    async def step(self, text: str, **more: Any) -> StepResult:
        """Send a reply. `more` can have the inference engine's `reasoning`, `finish_reason`, `stopped_by`."""
        return _step_result(await self._ask({"type": "step", "data": {"text": text, **more}}))

    async def state(self) -> dict[str, Any]:
        """Return the episode's scores and counts: success, progress, format errors, and others."""
        state: dict[str, Any] = await self._ask({"type": "state"})
        return state

    async def reset_many(
        self, episodes: Sequence[Mapping[str, Any]], places: Sequence[int] | None = None
    ) -> list[StepResult | SessionError]:
        """Begin a group of episodes, each with the options of `reset`. If `places` is given, restart only the episodes
        with these indices in the group. If an episode cannot begin, its result is a SessionError."""
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return await self._ask_many("reset_many", "episodes", episodes, places)
            except FullError:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(_AGAIN_S)

    async def step_many(
        self, replies: Sequence[Mapping[str, Any]], places: Sequence[int] | None = None
    ) -> list[StepResult | SessionError]:
        """Send replies, each `{"text": ...}`, to the episodes with the indices `places`, or to the whole group. If the
        result is a SessionError, the episode's simulator failed twice: the episode has no score and needs a reset."""
        return await self._ask_many("step_many", "replies", replies, places)

    async def state_many(self) -> list[dict[str, Any]]:
        return list(await self._ask({"type": "state_many"}))

    async def _ask_many(
        self, kind: str, what: str, entries: Sequence[Mapping[str, Any]], places: Sequence[int] | None
    ) -> list[StepResult | SessionError]:
        messages = _split_message(kind, what, entries, places)
        return [_result_or_error(answer) for message in messages for answer in await self._ask(message)]

    async def _ask(self, message: dict[str, Any]) -> Any:
        assert self._socket is not None, "use it as: async with AsyncSession(url) as session"
        try:
            await self._socket.send(_encode(message))
            return _parse(await asyncio.wait_for(self._socket.recv(), self._timeout_s * _rounds(message)))
        except ConnectionClosed as error:
            raise _connection_error(error) from None
        except TimeoutError:
            await self._socket.close()  # a late answer would be taken for the answer to the next request
            raise SessionError(_LATE) from None
        except asyncio.CancelledError:
            await self._socket.close()
            raise

    async def __aenter__(self) -> AsyncSession:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                self._socket = await connect(
                    _socket_url(self._url), additional_headers=_headers(self._token), **_OPTIONS
                )
                return self
            except InvalidStatus as error:
                _refuse_unless_busy(error, deadline)
                await asyncio.sleep(1)

    async def __aexit__(self, *exception: object) -> None:
        if self._socket is not None:
            await self._socket.close()


class Session:
    """`AsyncSession` for synchronous code. The constructor connects."""

    def __init__(self, url: str, **more: Any) -> None:
        self._own = AsyncSession(url, **more)
        _wait(self._own.__aenter__())

    def reset(self, **which: Any) -> StepResult:
        return _wait(self._own.reset(**which))

    def step(self, text: str, **more: Any) -> StepResult:
        return _wait(self._own.step(text, **more))

    def state(self) -> dict[str, Any]:
        return _wait(self._own.state())

    def reset_many(
        self, episodes: Sequence[Mapping[str, Any]], places: Sequence[int] | None = None
    ) -> list[StepResult | SessionError]:
        return _wait(self._own.reset_many(episodes, places))

    def step_many(
        self, replies: Sequence[Mapping[str, Any]], places: Sequence[int] | None = None
    ) -> list[StepResult | SessionError]:
        return _wait(self._own.step_many(replies, places))

    def state_many(self) -> list[dict[str, Any]]:
        return _wait(self._own.state_many())

    def close(self) -> None:
        _wait(self._own.__aexit__())

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _wait(answer: Coroutine[Any, Any, T]) -> T:
    future = asyncio.run_coroutine_threadsafe(answer, _loop(os.getpid()))
    try:
        return future.result()
    except BaseException:
        future.cancel()  # after Ctrl-C, `_ask` closes the connection
        raise


@cache
def _loop(process: int) -> asyncio.AbstractEventLoop:
    """Return the event loop of this process. A forked process gets a new loop, because a fork does not copy threads."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


def all_results(answers: Sequence[StepResult | SessionError]) -> list[StepResult]:
    """Return the results of `reset_many` or `step_many`. If an episode failed, raise its SessionError."""
    results = []
    for answer in answers:
        if isinstance(answer, SessionError):
            raise answer
        results.append(answer)
    return results


def _headers(token: str | None) -> dict[str, str]:
    token = token or os.environ.get(TOKEN)
    return {"Authorization": f"Bearer {token}"} if token else {}


def _socket_url(url: str) -> str:
    return "ws" + url.rstrip("/").removeprefix("http") + "/ws"


def _refuse_unless_busy(error: InvalidStatus, deadline: float) -> None:
    response = error.response
    if response.status_code != _BUSY or time.monotonic() > deadline:
        text = (response.body or b"").decode(errors="replace")[:300]
        raise SessionError(f"the server refused a session ({response.status_code}): {text}") from None


def _split_message(
    kind: str, what: str, entries: Sequence[Mapping[str, Any]], places: Sequence[int] | None
) -> Iterator[dict[str, Any]]:
    """Yield the request as one message, or as several if it is longer than `_MOST_BYTES`."""
    sizes = [len(_encode(entry).encode()) for entry in entries]
    if sum(sizes) <= _MOST_BYTES or (
        kind == "reset_many" and places is None
    ):  # a new group must begin in one message
        yield {"type": kind, "data": {what: [*entries], "places": None if places is None else [*places]}}
        return
    named, parts, size = range(len(entries)) if places is None else places, [list[int]()], 0
    for i, length in enumerate(sizes):
        if parts[-1] and size + length > _MOST_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(i)
        size += length
    for part in parts:
        data = {what: [entries[i] for i in part], "places": [named[i] for i in part]}
        yield {"type": kind, "data": data}


def _encode(message: Mapping[str, Any]) -> str:
    """Encode a message as JSON without escapes, which would make a reply in a non-Latin script 2 to 4 times as long."""
    plain = json.dumps(dict(message), ensure_ascii=False)
    try:
        plain.encode()
    except UnicodeEncodeError:  # the text has an unpaired surrogate, which needs an escape
        return json.dumps(dict(message))
    return plain


def _connection_error(error: ConnectionClosed) -> SessionError:
    return SessionError(f"the connection to the server is closed, and with it its episodes: {error}")


def _rounds(message: Mapping[str, Any]) -> int:
    """Return how many batches of `_UNDER_WAY` episodes the server makes of the message."""
    data = message.get("data", {})
    return -(-len(data.get("episodes") or data.get("replies") or [None]) // _UNDER_WAY)


def _result_or_error(answer: dict[str, Any]) -> StepResult | SessionError:
    if (error := answer.get("error")) is not None:
        return SessionError(f"{error['message']} ({error['code']})")
    return _step_result(answer)


def _parse(raw: str | bytes) -> Any:
    answer = json.loads(raw)
    data: Any = answer["data"]
    if answer["type"] == "error":
        kind = FullError if data["code"] == _FULL else SessionError
        raise kind(f"{data['message']} ({data['code']})")
    return data


def _step_result(data: dict[str, Any]) -> StepResult:
    seen = data["observation"]
    return StepResult(
        seen["text"],
        seen["messages"],
        seen["kept"],
        data["done"],
        data["reward"] or 0.0,
        seen.get("admissible"),
    )


def _http(url: str, path: str, body: dict[str, Any] | None, token: str | None) -> Any:
    request = urllib.request.Request(
        url.rstrip("/") + path,
        None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json", **_headers(token)},
    )
    try:
        # Ignore proxies, as for WebSockets: a web proxy usually cannot reach a server in the local network.
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=60) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        text = error.read(300).decode(errors="replace")
        raise SessionError(f"{path}: {error.code}: {text}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SessionError(f"{path}: {str(error) or type(error).__name__}") from None
