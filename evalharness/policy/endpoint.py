"""A model behind an OpenAI-compatible chat endpoint, asked through a thin aiohttp client.

The openai SDK spends 6 to 13 ms of CPU on a call with a long conversation and managed about 50 calls/s at 512
connections; aiohttp needs 0.2 ms and does several hundred (measured with 31-message chats on one small core).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import aiohttp

from envs.base import Task
from evalharness.errors import InfrastructureError, UserError
from evalharness.policy.base import Environment, Reply, RequestForm, Session
from evalharness.policy.completion import TryFailedError, read_answer, refuses_system_role
from evalharness.protocol.prompt import Message
from evalharness.protocol.react import STOP_SEQUENCES
from evalharness.records.episode import FailedTry

_REPLY_LIMIT = 8 * 1024 * 1024
"""Bytes of one answer. 8,192 tokens are below 100 kB; a server that sends more is broken."""
_BACKOFF = 0.5
"""Seconds before the second try; doubled for each further one, with jitter."""
_BACKOFF_LIMIT = 30.0
TURN_FORM = RequestForm(stop=STOP_SEQUENCES)
"""Of a turn in an episode."""
_KEEP_ALIVE = 4.0
"""Seconds for which an idle connection is kept. uvicorn (vLLM) and others close theirs after five: a request sent
on a connection that is just being closed fails, and only the server's side could tell whether it had been read."""


class EndpointError(InfrastructureError):
    """The endpoint did not give a usable answer within the bounds set for retrying."""

    def __init__(self, message: str, tries: tuple[FailedTry, ...] = ()) -> None:
        super().__init__(message)
        self.tries = tries

    def details(self) -> dict[str, Any]:
        return {"tries": [asdict(failed) for failed in self.tries]}


@dataclass(frozen=True)
class Sampling:
    """How replies are drawn. Greedy by default, as the published main results."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 256
    """Per reply: room for a thought and an action."""
    seed: int = 0


def merge_system(messages: list[Message]) -> list[Message]:
    """Put the system text at the head of the first user message, for chat templates without a system role."""
    if not messages or messages[0]["role"] != "system":
        return messages
    first = {"role": "user", "content": f"{messages[0]['content']}\n\n{messages[1]['content']}"}
    return [first, *messages[2:]]


def request_seed(seed: int, task_id: str, sample: int, turn: int) -> int:
    """A seed that is the same whenever the same turn is asked again, in whatever order; fits 31 bits."""
    digest = hashlib.sha256(f"{seed}/{task_id}/{sample}/{turn}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


class ChatEndpoint:
    """A policy: `POST {base_url}/chat/completions`. Call `start()` first, `close()` last."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        sampling: Sampling,
        api_key: str | None = None,
        connections: int = 512,
        timeout: float = 600.0,
        tries: int = 6,
        on_retry: Callable[[str], None] = lambda reason: None,
        on_overload: Callable[[], None] = lambda: None,
    ) -> None:
        """`timeout` is seconds for one try, first byte to last; a call ends within three times that, all tries and
        pauses included. `tries` bounds the answers that are missing or broken; a server that says it is busy (429,
        or 503 with Retry-After) is asked again for as long as the call's time lasts. `on_retry` is told in words why
        a try failed, `on_overload` that it was refused because the server has too much to do (429, 503)."""
        self.base_url = base_url.rstrip("/")
        self.model = model
        self.sampling = sampling
        self.max_model_len: int | None = None
        self.merges_system = False
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._connections = connections
        self._timeout = timeout
        self._tries = tries
        self._on_retry = on_retry
        self._on_overload = on_overload
        self._http: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Connect, check the model's name and ask for one real reply.

        Raises UserError when the endpoint is down, refuses the key, or has no such model.
        """
        self._http = aiohttp.ClientSession(
            headers=self._headers,
            connector=aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=_KEEP_ALIVE),
            timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=30),
        )
        models = await self._models()
        if models and self.model not in models:
            raise UserError(
                f"{self.base_url} serves no model {self.model!r}; it serves: {', '.join(sorted(models))} "
                "(choose with --model-name)"
            )
        if entry := models.get(self.model):
            length = entry.get("max_model_len")
            self.max_model_len = length if isinstance(length, int) else None
        probe: list[Message] = [
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": "Say ok."},
        ]
        try:
            await self._chat(probe, seed=0, max_tokens=4)
        except UserError as error:
            if not refuses_system_role(str(error)):
                raise
            self.merges_system = True
            await self._chat(probe, seed=0, max_tokens=4)

    async def _models(self) -> dict[str, dict[str, Any]]:
        """What `GET /models` lists; empty where an endpoint has no such route."""
        url = f"{self.base_url}/models"
        try:
            async with self._session.get(url, timeout=aiohttp.ClientTimeout(total=30)) as response:
                if response.status in (401, 403):
                    raise UserError(f"{url} refuses the API key (HTTP {response.status}); see --api-key-env")
                if response.status != 200:
                    return {}
                body = json.loads(await response.content.read(_REPLY_LIMIT))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UserError(
                f"no answer from {self.base_url} ({error or type(error).__name__}); "
                "is the server up, and does the URL end in /v1?"
            ) from None
        except ValueError:
            return {}
        entries = body.get("data") if isinstance(body, dict) else None
        return {
            entry["id"]: entry
            for entry in (entries if isinstance(entries, list) else [])
            if isinstance(entry, dict) and isinstance(entry.get("id"), str)
        }

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            raise RuntimeError("start() first")
        return self._http

    def session(self, task: Task, sample: int, environment: Environment) -> Session:
        return self.conversation(task.id, sample, TURN_FORM)

    def conversation(self, key: str, sample: int, form: RequestForm) -> Session:
        """Replies to messages outside any environment; `key` and `sample` tell conversations apart in their seeds."""
        return _EndpointSession(self, key, sample, form)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    async def chat(self, messages: list[Message], *, seed: int, form: RequestForm = TURN_FORM) -> Reply:
        """One reply, tried again within bounds.

        Raises ContextOverflowError, UserError (the server refuses the request for good), EndpointError.
        """
        return await self._chat(
            messages, seed=seed, max_tokens=form.max_tokens or self.sampling.max_tokens, form=form
        )

    async def _chat(
        self, messages: list[Message], *, seed: int, max_tokens: int, form: RequestForm = TURN_FORM
    ) -> Reply:
        payload: dict[str, Any] = {
            "model": self.model,
            "messages": merge_system(messages) if self.merges_system else messages,
            "temperature": self.sampling.temperature if form.temperature is None else form.temperature,
            "top_p": self.sampling.top_p,
            "max_tokens": max_tokens,
            "stop": list(form.stop),
            "seed": seed,
        }
        if form.response_format is not None:
            payload["response_format"] = form.response_format
        return await self._ask(json.dumps(payload).encode())

    async def _ask(self, body: bytes) -> Reply:
        """The same bytes at every try: with the seed in them, a turn that is asked again is the same request."""
        started = time.monotonic()
        failed: list[FailedTry] = []
        while True:
            began = time.monotonic()
            try:
                reply = await self._post(body)
            except TryFailedError as failure:
                pause = _pause(failure, len(failed))
                now = time.monotonic()
                over = now + pause > started + 2 * self._timeout
                broken = sum(earlier.kind != "busy" for earlier in failed) + (failure.kind != "busy")
                last = over or broken >= self._tries
                failed.append(
                    FailedTry(failure.kind, str(failure), now - began, waited=0.0 if last else pause)
                )
                self._on_retry(str(failure))
                if last:
                    raise EndpointError(
                        f"{self.base_url}: {failure}, {len(failed)} tries in {now - started:.0f} s"
                        + (
                            f", and it asks to wait {pause:.0f} s more"
                            if over and failure.retry_after
                            else ""
                        ),
                        tuple(failed),
                    ) from None
                await asyncio.sleep(pause)
            else:
                return Reply(**reply, latency=time.monotonic() - began, failed_tries=tuple(failed))

    async def _post(self, body: bytes) -> dict[str, Any]:
        url = f"{self.base_url}/chat/completions"
        headers = {"Content-Type": "application/json"}
        try:
            async with self._session.post(url, data=body, headers=headers) as response:
                raw = bytearray()
                async for chunk in response.content.iter_any():
                    raw += chunk
                    if len(raw) > _REPLY_LIMIT:
                        raise TryFailedError("too_long", f"an answer of more than {_REPLY_LIMIT} bytes")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TryFailedError(_kind(error), f"{type(error).__name__}: {error}".rstrip(": ")) from None
        if response.status in (429, 503):
            self._on_overload()
        return read_answer(url, response.status, response.headers, raw)


def _kind(error: Exception) -> str:
    match error:
        case aiohttp.ClientConnectorError():
            return "connect"
        case TimeoutError():
            return "timeout"
        case _:
            return "truncated"


def _pause(failure: TryFailedError, earlier: int) -> float:
    """Seconds until the next try. Jitter: hundreds of episodes that failed together must not come back together."""
    if failure.retry_after is not None:
        return failure.retry_after + random.uniform(0.0, min(1.0, 0.25 * failure.retry_after))
    return min(_BACKOFF * 2.0 ** min(earlier, 16), _BACKOFF_LIMIT) * random.uniform(0.5, 1.5)


@dataclass(frozen=True)
class _EndpointSession:
    endpoint: ChatEndpoint
    key: str
    sample: int
    form: RequestForm

    async def reply(self, messages: list[Message], *, turn: int) -> Reply:
        seed = request_seed(self.endpoint.sampling.seed, self.key, self.sample, turn)
        return await self.endpoint.chat(messages, seed=seed, form=self.form)
