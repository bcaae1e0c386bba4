"""All conversations with the model at once: asked, kept, judged, tried again where infrastructure fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from evalharness.engine.asking import CONTENT_STATUS, MOST_REFUSED, AskedModel
from evalharness.errors import UserError
from evalharness.policy.base import ContextOverflowError, Reply
from evalharness.policy.completion import RequestRefusedError
from evalharness.refine.conversation import Call, Conversation
from evalharness.refine.signals import Signal
from evalharness.refine.synthesis_progress import SynthesisProgress
from evalharness.refine.synthesis_store import SynthesisStore


class _RefusedEarlyError(Exception):
    """Refused while nothing had been answered yet: what the request is, or what this conversation says?"""

    def __init__(self, reason: UserError) -> None:
        super().__init__(str(reason))
        self.reason = reason


@dataclass(frozen=True)
class Job:
    """A persona that is not finished. Its conversation is made when its turn comes: not all fit into memory."""

    key: str
    make: Callable[[], Conversation]


@dataclass
class Asking:
    """`run` takes conversations to their ends, as many at once as the throttle allows."""

    asked: AskedModel
    store: SynthesisStore
    progress: SynthesisProgress
    _refused_early: list[tuple[Job, UserError]] = field(default_factory=list)

    async def run(self, jobs: Sequence[Job]) -> None:
        """Raises AbortedError, StoreError or UserError; then no other conversation goes on."""
        pending = list(jobs)
        while pending:
            await self.asked.each(pending, self._one)
            if self._refused_early and not self.asked.answered and not self.store.done:
                raise self._refused_early[0][1]
            self.asked.answered = True  # in an earlier session, if not in this one
            pending = [job for job, _ in self._refused_early]
            self._refused_early.clear()

    async def _one(self, job: Job) -> None:
        try:
            # In a thread, as every verification: it may take the time limit of untrusted expressions.
            conversation = await asyncio.to_thread(self._begin, job)
            if await self.asked.tried(job.key, partial(self._play, conversation)):
                self.store.add_finished(conversation)
                self.progress.finish(conversation)
        except _RefusedEarlyError as error:
            self._refused_early.append((job, error.reason))
            if len(self._refused_early) >= MOST_REFUSED and not self.asked.answered:
                raise error.reason from None

    def _begin(self, job: Job) -> Conversation:
        """From its beginning, or from where an earlier session left it."""
        conversation = job.make()
        for call in self.store.calls.get(job.key, ()):
            conversation.take(call)
        return conversation

    async def _play(self, conversation: Conversation) -> bool:
        while not conversation.finished:
            await self._ask(conversation)
        return True

    async def _ask(self, conversation: Conversation) -> None:
        number = conversation.calls + 1
        player = self.asked.model.conversation(conversation.key, 0, self.asked.form)
        async with self.asked.throttle.seat():
            call = await self._call(conversation, player.reply(conversation.messages(), turn=number))
        self.asked.throttle.answered()
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
            if not self.asked.answered:
                raise _RefusedEarlyError(_too_long(error)) from None
            return Call(conversation.key, number, str(error), refusal=Signal.CONTEXT)
        except RequestRefusedError as error:
            if error.status not in CONTENT_STATUS:
                raise
            if not self.asked.answered:
                raise _RefusedEarlyError(error) from None
            return Call(conversation.key, number, error.reason, refusal=Signal.REFUSED)
        self.asked.note_answer()
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
