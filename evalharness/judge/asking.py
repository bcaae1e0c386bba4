"""Many questions to one model at once: each is asked once, and its answer kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from evalharness.config import RunConfig
from evalharness.engine.asking import CONTENT_STATUS, MOST_REFUSED, AskedModel
from evalharness.errors import UserError
from evalharness.policy.base import ContextOverflowError, RequestForm
from evalharness.policy.completion import RequestRefusedError
from evalharness.protocol.prompt import Message

Refusal = Literal["context", "refused"]


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


async def ask(model: AskedModel, questions: Sequence[Question], keep: Callable[[Answer], None]) -> None:
    """`keep` gets each answer as it comes. Raises AbortedError, StoreError or UserError; then nothing goes on."""
    await _Questions(model, keep).run(questions)


@dataclass
class _Questions:
    asked: AskedModel
    keep: Callable[[Answer], None]
    _early: list[tuple[Answer, UserError]] = field(default_factory=list)

    async def run(self, questions: Sequence[Question]) -> None:
        await self.asked.each(questions, self._one)
        if self._early and not self.asked.answered:
            raise self._early[0][1]
        for answer, _ in self._early:
            self.keep(answer)

    async def _one(self, question: Question) -> None:
        answer = await self.asked.tried(question.key, partial(self._ask, question))
        if answer is not None:
            self.keep(answer)

    async def _ask(self, question: Question) -> Answer | None:
        """None: refused while nothing had been answered yet, which `run` settles."""
        player = self.asked.model.conversation(question.key, 0, question.form or self.asked.form)
        try:
            async with self.asked.throttle.seat():
                reply = await player.reply(question.messages(), turn=1)
        except ContextOverflowError as error:
            return self._refused(Answer(question.key, str(error), "context"), _too_long(error))
        except RequestRefusedError as error:
            if error.status not in CONTENT_STATUS:
                raise
            return self._refused(Answer(question.key, error.reason, "refused"), error)
        self.asked.throttle.answered()
        self.asked.note_answer()
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
        if self.asked.answered:
            return answer
        self._early.append((answer, reason))
        if len(self._early) >= MOST_REFUSED:
            raise reason
        return None


def _too_long(error: ContextOverflowError) -> UserError:
    return UserError(
        f"the question and the reply do not fit the model's context ({error}); lower the number of tokens of a reply, "
        "or serve the model with a longer context"
    )


def refuse_scripted(config: RunConfig, flag: str) -> None:
    """Raises UserError for a model that writes no text, and for an endpoint without a name."""
    if config.is_scripted:
        raise UserError(
            f"{flag} {config.model} writes no text; give a checkpoint, a hub id, demo or http://host:port/v1"
        )
    if config.is_endpoint and config.model_name is None:
        raise UserError(f"{flag} {config.model}: say with {flag}-name NAME by which name it serves the model")
