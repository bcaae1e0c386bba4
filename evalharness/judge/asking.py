"""Many questions to one model at once: asked, answered, tried again where infrastructure fails."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from evalharness.config import RunConfig
from evalharness.engine.throttle import CEILING, Throttle
from evalharness.errors import InfrastructureError, UserError
from evalharness.judge.progress import AskingProgress
from evalharness.policy.base import ContextOverflowError, RequestForm
from evalharness.policy.completion import RequestRefusedError, refuses_response_format
from evalharness.policy.endpoint import EndpointError, RefusedError
from evalharness.policy.replicas import Replicas
from evalharness.policy.resolve import Prepared, Reports
from evalharness.protocol.prompt import Message
from evalharness.records.store import StoreError
from evalharness.server.metrics import ServerInsight

_CONTENT_STATUS = (400, 403, 413, 422)
"""HTTP statuses of a refusal that can be due to what one question says."""
_MOST_REFUSED = 8
"""Questions refused before any was answered, until that is taken for a mistake in the request."""
_PROBE_TOKENS = 8

Refusal = Literal["context", "refused"]


class AbortedError(InfrastructureError):
    """Going on would only burn the tries of every question."""


@dataclass(frozen=True)
class Question:
    key: str
    """Tells its seed and its record apart from all others'."""
    messages: Callable[[], list[Message]]
    """Made when its turn comes: not all fit into memory."""
    form: RequestForm | None = None
    """None: the one of all."""


@dataclass(frozen=True)
class Answer:
    key: str
    text: str
    refusal: Refusal | None = None
    """The server would not take the question: too long for the context, or refused for what it says."""
    finish_reason: str = "stop"
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_s: float = 0.0
    tries: int = 1


@dataclass
class Asking:
    """`run` takes every question to an answer, as many at once as the throttle allows."""

    model: Replicas
    throttle: Throttle
    progress: AskingProgress
    form: RequestForm
    attempts: int
    on_error: Callable[[str, int, InfrastructureError, bool], None]
    """(key, attempt, error, whether the question was given up): every failed try."""
    model_gone: Callable[[], str | None] = lambda: None
    """Why the model can never answer again; None while it can."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Of the model's server, for the manifest."""
    answered: bool = False
    """The model has answered a question, in an earlier session if not in this one."""
    _failed_in_a_row: int = 0
    _early: list[tuple[Answer, UserError]] = field(default_factory=list)

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

    async def run(self, questions: Sequence[Question], keep: Callable[[Answer], None]) -> None:
        """`keep` gets each answer as it comes. Raises AbortedError, StoreError or UserError; then nothing goes on."""
        waiting = list(reversed(questions))
        try:
            async with asyncio.TaskGroup() as group:
                while waiting:
                    while waiting and self.throttle.has_room:
                        self.throttle.begin_episode()
                        group.create_task(self._one(waiting.pop(), keep))
                    await self.throttle.change()
        except BaseExceptionGroup as errors:
            raise _first(errors) from None
        if self._early and not self.answered:
            raise self._early[0][1]
        for answer, _ in self._early:
            keep(answer)
        self._early.clear()

    async def _one(self, question: Question, keep: Callable[[Answer], None]) -> None:
        self.progress.running += 1
        try:
            for attempt in range(1, self.attempts + 1):
                try:
                    answer = await self._ask(question)
                except StoreError:
                    raise
                except InfrastructureError as error:
                    self._note(question.key, attempt, error)
                    continue
                if answer is not None:
                    keep(answer)
                return
        finally:
            self.progress.running -= 1
            self.throttle.end_episode()

    async def _ask(self, question: Question) -> Answer | None:
        """None: refused while nothing had been answered yet, which `run` settles."""
        player = self.model.conversation(question.key, 0, question.form or self.form)
        try:
            async with self.throttle.seat():
                reply = await player.reply(question.messages(), turn=1)
        except ContextOverflowError as error:
            return self._refused(Answer(question.key, str(error), "context"), _too_long(error))
        except RequestRefusedError as error:
            if error.status not in _CONTENT_STATUS:
                raise
            return self._refused(Answer(question.key, error.reason, "refused"), error)
        self.throttle.answered()
        self.answered = True
        self._failed_in_a_row = 0
        return Answer(
            question.key,
            reply.text,
            None,
            reply.finish_reason,
            reply.prompt_tokens,
            reply.completion_tokens,
            round(reply.latency, 3),
            1 + len(reply.failed_tries),
        )

    def _refused(self, answer: Answer, reason: UserError) -> Answer | None:
        """An answer like any other, once the model has answered something: before, it may be the request itself."""
        if self.answered:
            return answer
        self._early.append((answer, reason))
        if len(self._early) >= _MOST_REFUSED:
            raise reason
        return None

    def _note(self, key: str, attempt: int, error: InfrastructureError) -> None:
        """Record a failed try. Raises AbortedError where no question can be answered any more."""
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


def _too_long(error: ContextOverflowError) -> UserError:
    return UserError(
        f"the question and the reply do not fit the model's context ({error}); lower the number of tokens of a reply, "
        "or serve the model with a longer context"
    )


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first leaf: the one that made the others stop."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def refuse_scripted(config: RunConfig, flag: str) -> None:
    """Raises UserError for a model that writes no text, and for an endpoint without a name."""
    if config.is_scripted:
        raise UserError(
            f"{flag} {config.model} writes no text; give a checkpoint, a hub id, demo or http://host:port/v1"
        )
    if config.is_endpoint and config.model_name is None:
        raise UserError(f"{flag} {config.model}: say with {flag}-name NAME by which name it serves the model")


@asynccontextmanager
async def asked(
    config: RunConfig,
    prepared: Prepared,
    folder: Path,
    form: RequestForm,
    progress: AskingProgress,
    on_error: Callable[[str, int, InfrastructureError, bool], None],
) -> AsyncIterator[Asking]:
    """The model at work, its server watched, until the context closes."""
    throttle = Throttle(config.concurrency, ceiling=CEILING)

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
            yield Asking(
                opened.policy,
                throttle,
                progress,
                form,
                config.attempts,
                on_error,
                opened.failure,
                dict(opened.facts or {}),
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
