"""All conversations with the model at once: asked, kept, judged, tried again where infrastructure fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evalharness.engine.throttle import Throttle
from evalharness.errors import InfrastructureError, UserError
from evalharness.policy.base import ContextOverflowError, Reply, RequestForm
from evalharness.policy.completion import RequestRefusedError, refuses_response_format
from evalharness.policy.endpoint import EndpointError, RefusedError
from evalharness.policy.replicas import Replicas
from evalharness.records.store import StoreError
from evalharness.refine.conversation import Call, Conversation
from evalharness.refine.signals import Signal
from evalharness.refine.synthesis_progress import SynthesisProgress
from evalharness.refine.synthesis_store import SynthesisStore

_CONTENT_STATUS = (400, 403, 413, 422)
"""HTTP statuses of a refusal that can be due to what one conversation says."""
_PROBE_TOKENS = 8
_MOST_REFUSED = 8
"""Requests refused before any was answered, until that is taken for a mistake in the request."""


class _RefusedEarlyError(Exception):
    """Refused while nothing had been answered yet: what the request is, or what this conversation says?"""

    def __init__(self, reason: UserError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class AbortedError(InfrastructureError):
    """Going on would only burn the tries of every conversation."""


@dataclass(frozen=True)
class Job:
    """A persona that is not finished. Its conversation is made when its turn comes: not all fit into memory."""

    key: str
    make: Callable[[], Conversation]


@dataclass
class Asking:
    """`run` takes conversations to their ends, as many at once as the throttle allows."""

    model: Replicas
    store: SynthesisStore
    throttle: Throttle
    progress: SynthesisProgress
    form: RequestForm
    attempts: int
    model_gone: Callable[[], str | None] = lambda: None
    """Why the model can never answer again; None while it can."""
    _failed_in_a_row: int = 0
    _answered: bool = False
    _refused_early: list[tuple[Job, UserError]] = field(default_factory=list)

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
            self.form = RequestForm()
            return {"structured_output": False, "structured_output_refused": error.reason}
        return {"structured_output": True}

    async def run(self, jobs: Sequence[Job]) -> None:
        """Raises AbortedError, StoreError or UserError; then no other conversation goes on."""
        pending = list(jobs)
        while pending:
            await self._run(pending)
            if self._refused_early and not self._answered and not self.store.done:
                raise self._refused_early[0][1]
            self._answered = True  # in an earlier session, if not in this one
            pending = [job for job, _ in self._refused_early]
            self._refused_early.clear()

    async def _run(self, jobs: Sequence[Job]) -> None:
        waiting = list(reversed(jobs))
        try:
            async with asyncio.TaskGroup() as group:
                while waiting:
                    while waiting and self.throttle.has_room:
                        self.throttle.begin_episode()
                        group.create_task(self._one(waiting.pop()))
                    await self.throttle.change()
        except BaseExceptionGroup as errors:
            raise _first(errors) from None

    async def _one(self, job: Job) -> None:
        self.progress.running += 1
        try:
            # In a thread, as every verification: it may take the time limit of untrusted expressions.
            await self._finish(await asyncio.to_thread(self._begin, job))
        except _RefusedEarlyError as error:
            self._refused_early.append((job, error.reason))
            if len(self._refused_early) >= _MOST_REFUSED and not self._answered:
                raise error.reason from None
        finally:
            self.progress.running -= 1
            self.throttle.end_episode()

    def _begin(self, job: Job) -> Conversation:
        """From its beginning, or from where an earlier session left it."""
        conversation = job.make()
        for call in self.store.calls.get(job.key, ()):
            conversation.take(call)
        return conversation

    async def _finish(self, conversation: Conversation) -> None:
        for attempt in range(1, self.attempts + 1):
            try:
                while not conversation.finished:
                    await self._ask(conversation)
            except StoreError:
                raise
            except InfrastructureError as error:
                self._note(conversation, attempt, error)
            else:
                self.store.add_finished(conversation)
                self.progress.finish(conversation)
                return

    def _note(self, conversation: Conversation, attempt: int, error: InfrastructureError) -> None:
        """Record a failed try. Raises AbortedError where no conversation can go on."""
        reason = self.model_gone()
        final = attempt == self.attempts or reason is not None
        self.store.add_error(conversation.key, attempt, error, final)
        self.progress.status = f"{conversation.key}, try {attempt}: {error}"
        self.progress.failures += final
        if reason is not None:
            raise AbortedError(reason)
        if isinstance(error, RefusedError):
            raise AbortedError(f"the model's server refuses every request: {error}")
        if isinstance(error, EndpointError):
            self._failed_in_a_row += 1
            if self._failed_in_a_row >= max(self.attempts, self.throttle.limit):
                raise AbortedError(f"the model's server has stopped answering: {error}")

    async def _ask(self, conversation: Conversation) -> None:
        number = conversation.calls + 1
        player = self.model.conversation(conversation.key, 0, self.form)
        async with self.throttle.seat():
            call = await self._call(conversation, player.reply(conversation.messages(), turn=number))
        self.throttle.answered()
        self.store.add_call(call)
        self.progress.count(call)
        await asyncio.to_thread(conversation.take, call)

    async def _call(self, conversation: Conversation, reply: Awaitable[Reply]) -> Call:
        """The call and its answer. What the server refuses for what this conversation says is an answer too, once
        it has answered others. Raises _RefusedEarlyError before that."""
        number = conversation.calls + 1
        try:
            answer = await reply
        except ContextOverflowError as error:
            if not self._answered:
                raise _RefusedEarlyError(_too_long(error)) from None
            return Call(conversation.key, number, str(error), refusal=Signal.CONTEXT)
        except RequestRefusedError as error:
            if error.status not in _CONTENT_STATUS:
                raise
            if not self._answered:
                raise _RefusedEarlyError(error) from None
            return Call(conversation.key, number, error.reason, refusal=Signal.REFUSED)
        self._answered = True
        self._failed_in_a_row = 0
        return Call(
            conversation.key,
            number,
            answer.text,
            answer.finish_reason,
            answer.prompt_tokens,
            answer.completion_tokens,
            answer.latency,
            1 + len(answer.failed_tries),
        )


def _too_long(error: ContextOverflowError) -> UserError:
    return UserError(
        f"the prompt and the reply do not fit the model's context ({error}); lower --max-tokens, or let the server "
        'take more: --vllm-args "--max-model-len 16384"'
    )


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first leaf: the one that made the others stop."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
