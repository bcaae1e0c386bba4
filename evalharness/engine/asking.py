"""A model that is asked many things at once: its server watched, failed tries noted, ended where going on is no use."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from evalharness.config import RunConfig
from evalharness.engine.throttle import CEILING, Throttle
from evalharness.errors import InfrastructureError
from evalharness.policy.base import RequestForm
from evalharness.policy.completion import RequestRefusedError, refuses_response_format
from evalharness.policy.endpoint import EndpointError, RefusedError
from evalharness.policy.opened import Prepared, Reports
from evalharness.policy.replicas import Replicas
from evalharness.records.store import StoreError
from evalharness.server.metrics import ServerInsight

CONTENT_STATUS = (400, 403, 413, 422)
"""HTTP statuses of a refusal that can be due to what one request says."""
MOST_REFUSED = 8
"""Requests refused before any was answered, until that is taken for a mistake in the request."""
_PROBE_TOKENS = 8

T = TypeVar("T")
OnError = Callable[[str, int, InfrastructureError, bool], None]
"""(key, attempt, error, whether it was given up): every failed try."""


class AbortedError(InfrastructureError):
    """Going on would only burn the tries of everything that is left."""


@dataclass(frozen=True)
class TokenPrices:
    """Of a million tokens, in whatever money they were given in; None where unknown."""

    prompt: float | None = None
    completion: float | None = None

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        if self.prompt is None or self.completion is None:
            return None
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


@dataclass(kw_only=True)
class WorkProgress:
    """What a view of the work reads. Who asks adds what it counts."""

    running: int = 0
    failures: int = 0
    """Given up for an infrastructure failure; the same command tries them again."""
    completion_tokens: int = 0
    status: str = ""
    engine: Callable[[], str] = lambda: ""
    """One line on the concurrency and on what the model's server says of itself."""
    started: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started


@dataclass
class AskedModel:
    """A model at work. Who asks says what is asked and what becomes of the answers."""

    model: Replicas
    throttle: Throttle
    progress: WorkProgress
    form: RequestForm
    attempts: int
    on_error: OnError
    model_gone: Callable[[], str | None] = lambda: None
    """Why the model can never answer again; None while it can."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Of the model's server, for the manifest."""
    events: Sequence[str] = ()
    """What happened to its servers meanwhile."""
    answered: bool = False
    """It has answered something, in an earlier session if not in this one."""
    _failed_in_a_row: int = 0

    async def settle_form(self) -> dict[str, Any]:
        """Find out once whether the server can be held to the schema; without it where it refuses.

        Returns what the manifest says of it. Raises UserError where the server refuses for another reason.
        """
        if self.form.response_format is None:
            return {"structured_output": False}
        probe = self.model.conversation("structured output", 0, replace(self.form, max_tokens=_PROBE_TOKENS))
        try:
            await probe.reply([{"role": "user", "content": "Reply with JSON."}], turn=0)
        except RequestRefusedError as error:
            if not refuses_response_format(error.reason):
                raise
            self.form = replace(self.form, response_format=None)
            return {"structured_output": False, "structured_output_refused": error.reason}
        return {"structured_output": True}

    async def each(self, things: Sequence[T], work: Callable[[T], Coroutine[Any, Any, None]]) -> None:
        """`work` on all of them, as many at once as the throttle allows. The first error ends all, and is raised."""

        async def one(thing: T) -> None:
            self.progress.running += 1
            try:
                await work(thing)
            finally:
                self.progress.running -= 1
                self.throttle.end_episode()

        waiting = list(reversed(things))
        try:
            async with asyncio.TaskGroup() as group:
                while waiting:
                    while waiting and self.throttle.has_room:
                        self.throttle.begin_episode()
                        group.create_task(one(waiting.pop()))
                    await self.throttle.change()
        except BaseExceptionGroup as errors:
            raise _first(errors) from None

    async def tried(self, key: str, once: Callable[[], Awaitable[T]]) -> T | None:
        """What `once` gives, tried again where infrastructure fails; None where it was given up.

        Raises AbortedError where nothing can be answered any more, StoreError when the disk refuses.
        """
        for attempt in range(1, self.attempts + 1):
            try:
                return await once()
            except StoreError:
                raise
            except InfrastructureError as error:
                self._note(key, attempt, error)
        return None

    def note_answer(self) -> None:
        """The model answered a request."""
        self.answered = True
        self._failed_in_a_row = 0

    def _note(self, key: str, attempt: int, error: InfrastructureError) -> None:
        reason = self.model_gone()
        final = attempt == self.attempts or reason is not None
        self.on_error(key, attempt, error, final)
        self.progress.status = f"{key}, try {attempt}: {error}"
        self.progress.failures += final
        if reason is not None:
            raise AbortedError(reason)
        if isinstance(error, RefusedError):
            raise AbortedError(f"the model's server refuses every request: {error}")
        if isinstance(error, EndpointError):
            self._failed_in_a_row += 1
            if self._failed_in_a_row >= max(self.attempts, self.throttle.limit):
                raise AbortedError(f"the model's server has stopped answering: {error}")


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first leaf: the one that made the others stop."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@asynccontextmanager
async def asked(
    config: RunConfig,
    prepared: Prepared,
    folder: Path,
    form: RequestForm,
    progress: WorkProgress,
    on_error: OnError,
    *,
    ceiling: int = CEILING,
) -> AsyncIterator[AskedModel]:
    """The model at work, its server watched, until the context closes. `folder` gets the server's log."""
    throttle = Throttle(config.concurrency, ceiling=ceiling)

    def set_status(text: str) -> None:
        progress.status = text

    events: list[str] = []
    reports = Reports(status=set_status, event=events.append, overload=throttle.overloaded)
    async with prepared.open(folder, reports) as opened:
        assert isinstance(opened.policy, Replicas)
        insight = ServerInsight(opened.metrics, on_saturated=throttle.saturated)
        progress.engine = lambda: _engine_line(throttle, insight)
        progress.status = ""
        progress.started = time.monotonic()
        watching = asyncio.create_task(insight.watch())
        try:
            yield AskedModel(
                opened.policy,
                throttle,
                progress,
                form,
                config.attempts,
                on_error,
                opened.failure,
                dict(opened.facts or {}),
                events,
            )
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching


def _engine_line(throttle: Throttle, insight: ServerInsight) -> str:
    parts = [f"concurrency {throttle.limit} ({throttle.state}), {throttle.busy} at the model"]
    if (now := insight.now) is not None:
        parts.append(f"server {now.running:.0f} running, {now.waiting:.0f} waiting, KV {now.kv_usage:.0%}")
    return " · ".join(parts)
