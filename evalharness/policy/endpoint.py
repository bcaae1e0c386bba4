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
from dataclasses import dataclass
from typing import Any

import aiohttp

from envs.base import Task
from evalharness.errors import InfrastructureError, UserError
from evalharness.policy.base import ContextOverflowError, Environment, Reply, Session
from evalharness.prompt import Message
from evalharness.react import STOP_SEQUENCES

_REPLY_LIMIT = 8 * 1024 * 1024
"""Bytes of one answer. 8,192 tokens are below 100 kB; a server that sends more is broken."""
_BACKOFF = 0.5
"""Seconds before the second try; doubled for each further one, with jitter."""
_BACKOFF_LIMIT = 30.0


class EndpointError(InfrastructureError):
    """The endpoint did not give a usable answer within the bounds set for retrying."""


@dataclass(frozen=True)
class Sampling:
    """How replies are drawn. Greedy by default, as the published main results."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 256
    """Per reply: room for a thought and an action."""
    seed: int = 0


class _RetryError(Exception):
    """This try failed in a way that a further one may mend."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


def _is_context_overflow(message: str) -> bool:
    text = message.lower()
    return ("context" in text and ("length" in text or "window" in text)) or "max_model_len" in text


def _refuses_system_role(message: str) -> bool:
    text = message.lower()
    return "system" in text and ("role" in text or "support" in text)


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
        """`timeout` is seconds for one try, first byte to last; `on_retry` is told why a try failed, `on_overload`
        that it was refused because the server has too much to do (429, 503)."""
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
            connector=aiohttp.TCPConnector(limit=self._connections),
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
            if not _refuses_system_role(str(error)):
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
        return _EndpointSession(self, task.id, sample)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    async def chat(self, messages: list[Message], *, seed: int) -> Reply:
        """One reply, tried again within bounds.

        Raises ContextOverflowError, UserError (the server refuses the request for good), EndpointError.
        """
        return await self._chat(messages, seed=seed, max_tokens=self.sampling.max_tokens)

    async def _chat(self, messages: list[Message], *, seed: int, max_tokens: int) -> Reply:
        payload: dict[str, Any] = {
            "model": self.model,
            "messages": merge_system(messages) if self.merges_system else messages,
            "temperature": self.sampling.temperature,
            "top_p": self.sampling.top_p,
            "max_tokens": max_tokens,
            "stop": list(STOP_SEQUENCES),
            "seed": seed,
        }
        body = json.dumps(payload).encode()
        started = time.perf_counter()
        wait = _BACKOFF
        for number in range(1, self._tries + 1):
            try:
                reply = await self._post(body)
            except _RetryError as failure:
                self._on_retry(str(failure))
                if number == self._tries:
                    raise EndpointError(f"{self.base_url}: {failure}, {number} tries") from None
                pause = wait * random.uniform(0.5, 1.5) if failure.wait is None else failure.wait
                await asyncio.sleep(min(pause, _BACKOFF_LIMIT))
                wait *= 2
            else:
                return Reply(**reply, latency=time.perf_counter() - started, tries=number)
        raise AssertionError("unreachable")

    async def _post(self, body: bytes) -> dict[str, Any]:
        url = f"{self.base_url}/chat/completions"
        try:
            async with self._session.post(
                url, data=body, headers={"Content-Type": "application/json"}
            ) as response:
                raw = bytearray()
                async for chunk in response.content.iter_any():
                    raw += chunk
                    if len(raw) > _REPLY_LIMIT:
                        raise _RetryError(f"an answer of more than {_REPLY_LIMIT} bytes")
                status, headers = response.status, response.headers
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _RetryError(
                f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            ) from None
        if status == 200:
            return _read_completion(raw)
        message = _error_message(raw)
        if status in (429, 503):
            self._on_overload()
        if status in (400, 413, 422) and _is_context_overflow(message):
            raise ContextOverflowError(message)
        if status in (408, 409, 425, 429) or status >= 500:
            raise _RetryError(f"HTTP {status}: {message}", _retry_after(headers.get("Retry-After")))
        raise UserError(f"{url} refuses the request (HTTP {status}): {message}")


def _retry_after(header: str | None) -> float | None:
    """Seconds; the date form of the header is not used by model servers and falls back to our own waiting."""
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None


def _error_message(raw: bytes | bytearray) -> str:
    """The server's own words, at most 500 characters."""
    try:
        body = json.loads(raw)
        error = body.get("error", body.get("message", body.get("detail", body)))
        text = error.get("message", error) if isinstance(error, dict) else error
    except (ValueError, AttributeError):
        text = raw.decode(errors="replace")
    return str(text).strip()[:500]


def _read_completion(raw: bytes | bytearray) -> dict[str, Any]:
    """The fields of a Reply. Raises _RetryError when the answer is not a chat completion."""
    try:
        body = json.loads(raw)
        choice = body["choices"][0]
        message = choice["message"]
        text = message.get("content") or ""
        reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
        usage = body.get("usage") or {}
        if not isinstance(text, str) or not isinstance(reasoning, str):
            raise TypeError("content is not text")
        # JSON can spell half a surrogate pair; nothing downstream could write it as UTF-8.
        text, reasoning = (part.encode("utf-8", "replace").decode() for part in (text, reasoning))
        stopped_by = choice.get("stop_reason")
        return {
            "text": f"<think>{reasoning}</think>{text}" if reasoning else text,
            "finish_reason": str(choice.get("finish_reason") or "stop"),
            "stopped_by": stopped_by if isinstance(stopped_by, str) else None,
            "prompt_tokens": _count(usage.get("prompt_tokens")),
            "completion_tokens": _count(usage.get("completion_tokens")),
        }
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise _RetryError(
            f"not a chat completion ({type(error).__name__}: {error}): {bytes(raw[:80])!r}"
        ) from None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


@dataclass(frozen=True)
class _EndpointSession:
    endpoint: ChatEndpoint
    task_id: str
    sample: int

    async def reply(self, messages: list[Message], *, turn: int) -> Reply:
        seed = request_seed(self.endpoint.sampling.seed, self.task_id, self.sample, turn)
        return await self.endpoint.chat(messages, seed=seed)
