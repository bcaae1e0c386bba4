"""Send many requests to a model at once, watch its server, record failures, and stop if the model cannot answer."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from evalharness.base.errors import InfrastructureError, UserError, first_error
from evalharness.config import PolicyConfig
from evalharness.models.base import ContextOverflowError, Player, RequestForm
from evalharness.models.completion import RequestRefusedError, refuses_response_format
from evalharness.models.opened import Prepared, Reports
from evalharness.models.replicas import Replicas
from evalharness.models.serving.metrics import ServerInsight
from evalharness.models.slots import MOST, Slots
from evalharness.models.tries import AbortedError, Tries
from evalharness.models.work import WorkProgress
from evalharness.protocol.prompt import Message
from evalharness.records.answers import AnswerFolder

_CONTENT_STATUS = (400, 403, 413, 422)
"""HTTP statuses with which a server may refuse one request because of its content."""
_MOST_REFUSED = 8
"""After this many refused requests and no answer, the command stops: the form of all requests is probably wrong."""
_PROBE_TOKENS = 8
_LOOK_SHARE = 0.1
"""Maximum share of the time for checks which model is served: on a large router one check takes a second."""
_LONGEST_PAUSE = 1.0
"""Maximum seconds between two checks of the model while an answer waits for the check."""
TRIES = 3
"""Default number of tries for one job if infrastructure fails."""

OnFailure = Callable[[str, int, InfrastructureError, bool], None]
"""Callback after every failed try of a job: (the job's key, number of the try, error, whether the job was given up)."""
Refusal = Literal["context", "refused"]


@dataclass(frozen=True)
class Answer:
    key: str
    number: int
    """Number of the request among the requests with the same `key`, from 1."""
    reply: str
    """The model's reply, or the server's error text if the server refused the request."""
    refusal: Refusal | None = None
    """Why the server refused the request: it exceeds the context, or its content was refused."""
    finish_reason: str = "stop"
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_s: float = 0.0
    tries: int = 1

    def to_json(self) -> dict[str, Any]:
        """Return all fields except `key` and `number`."""
        return {name: value for name, value in vars(self).items() if name not in ("key", "number")}


@dataclass(frozen=True)
class AskingResult:
    """The result of a command that sends many requests to a model."""

    folder: Path
    summary: dict[str, Any]
    """Counts for the user; the field `left` is the number of jobs without a result."""
    stopped: str | None
    """Why the command ended before every job was tried; None if all were tried."""

    @property
    def exit_status(self) -> int:
        """Exit status of the command: 0 if every job has a result, otherwise 3."""
        return 0 if self.stopped is None and not self.summary["left"] else 3


class RefusedEarlyError(Exception):
    """The server refused a request before it answered any request, so the form of all requests may be wrong."""

    def __init__(self, reason: UserError) -> None:
        super().__init__(str(reason))
        self.reason = reason


@dataclass
class AskedModel:
    """An opened model that answers requests. The caller writes the requests and uses the answers."""

    model: Replicas
    slots: Slots
    progress: WorkProgress
    form: RequestForm
    tries: Tries[str]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts about the model's server, for the manifest."""
    events: Sequence[str] = ()
    """Events of the model's servers, such as a restart."""
    answered_before: bool = False
    """The model has answered a request in an earlier session."""
    _answered: bool = False
    """The model has answered a request in this session."""
    _refused_early: int = 0
    _next_look: float = 0.0
    """Earliest time (`time.monotonic`) of the next check which model the server serves."""
    _form_is_right: bool = False
    """Whether the server has accepted the form of the requests; later refusals then concern a request's content."""

    async def settle_form(self) -> dict[str, Any]:
        """Test once whether the server accepts the JSON schema; if it refuses, send requests without the schema.

        Returns fields for the manifest. Raises UserError if the server refuses for another reason.
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

    async def run(self, jobs: Mapping[str, Callable[[], Awaitable[None]]]) -> None:
        """Run every job, as many at once as the slots allow, and retry a job if infrastructure fails. If the server
        refuses a job before its first answer to any request, run this job again after all other jobs.

        Raises AbortedError, StoreError or UserError, also if the server answered no request; all jobs are then stopped.
        """
        left: Mapping[str, Callable[[], Awaitable[None]]] = jobs
        while left:
            refused = await self._round(left)
            if refused and not (self._answered or self.answered_before):
                raise next(iter(refused.values()))
            self._form_is_right = self._form_is_right or bool(refused)
            left = {key: jobs[key] for key in refused}

    async def _round(self, jobs: Mapping[str, Callable[[], Awaitable[None]]]) -> dict[str, UserError]:
        """Run the jobs; map the key of each job that raised `RefusedEarlyError` to the server's reason."""
        refused: dict[str, UserError] = {}

        async def one(key: str) -> None:
            self.progress.running += 1
            try:
                await self.tries.of(key, jobs[key])
            except RefusedEarlyError as error:
                refused[key] = error.reason
            finally:
                self.progress.running -= 1
                self.slots.end_episode()

        waiting = [*jobs][::-1]
        try:
            async with asyncio.TaskGroup() as group:
                while waiting:
                    while waiting and self.slots.has_room:
                        self.slots.begin_episode()
                        group.create_task(one(waiting.pop()))
                    await self.slots.change()
        except BaseExceptionGroup as errors:
            raise first_error(errors) from None
        return refused

    async def answer(
        self,
        key: str,
        messages: list[Message],
        *,
        number: int = 1,
        sample: int = 0,
        form: RequestForm | None = None,
    ) -> Answer:
        """Return the model's answer, or an Answer with `refusal` if the server refuses the request's content. `key`,
        `number` and `sample` determine the seed. Check afterwards that the server still serves the same model.

        Raises InfrastructureError; RefusedEarlyError if the server refuses the request before its first answer;
        UserError after `_MOST_REFUSED` such refusals, for other refusals, and if the model has changed.
        """
        player = self.model.conversation(key, sample, form or self.form)
        try:
            async with self.slots.slot():
                reply = await player.reply(messages, turn=number)
        except ContextOverflowError as error:
            answer = self._judge_refusal(Answer(key, number, str(error), "context"), _too_long(error))
        except RequestRefusedError as error:
            if error.status not in _CONTENT_STATUS:
                raise
            answer = self._judge_refusal(Answer(key, number, error.reason, "refused"), error)
        else:
            self.slots.count_reply()
            self._answered = True
            answer = Answer(
                key,
                number,
                reply.text,
                None,
                reply.finish_reason,
                reply.prompt_tokens,
                reply.completion_tokens,
                round(reply.latency, 3),
                1 + len(reply.failed_tries),
            )
        await self._confirm(player)
        self.tries.note_answer()
        self.progress.calls += 1
        self.progress.completion_tokens += answer.completion_tokens or 0
        return answer

    async def _confirm(self, player: Player) -> None:
        """Call `Player.confirm`; after a slow check, wait longer before the next check."""
        await asyncio.sleep(max(0.0, self._next_look - time.monotonic()))
        began = time.monotonic()
        await player.confirm()
        self._next_look = began + min((time.monotonic() - began) / _LOOK_SHARE, _LONGEST_PAUSE)

    def _judge_refusal(self, answer: Answer, reason: UserError) -> Answer:
        # Ignore answers of earlier sessions if a prompt is too long now: a restarted server may have a shorter context.
        answered_before = self.answered_before and answer.refusal == "refused"
        if self._answered or self._form_is_right or answered_before:
            return answer
        self._refused_early += 1
        if self._refused_early >= _MOST_REFUSED:
            raise reason
        raise RefusedEarlyError(reason)


def _too_long(error: ContextOverflowError) -> UserError:
    return UserError(
        f"the prompt and the reply do not fit the model's context ({error}); lower --max-tokens, or serve the model "
        "with a longer context (vLLM: --max-model-len 16384)"
    )


@asynccontextmanager
async def open_asked_model(
    prepared: Prepared,
    folder: Path,
    form: RequestForm,
    progress: WorkProgress,
    on_failure: OnFailure,
    *,
    tries: int,
    concurrency: int | None,
    ceiling: int = MOST,
) -> AsyncIterator[AskedModel]:
    """Open the model and watch its server until the context closes. `folder` gets the server's log; `tries` is the
    number of tries for one job, `concurrency` the maximum number of requests at once (None: `ceiling`)."""
    slots = Slots(concurrency or ceiling, pinned=concurrency is not None)

    def note_failure(key: str, number: int, error: InfrastructureError, final: bool) -> None:
        on_failure(key, number, error, final)
        progress.status = f"{key}, try {number}: {error}"
        progress.failures += final

    events: list[str] = []
    reports = Reports(status=progress.set_status, event=events.append, overload=slots.count_overload)
    async with prepared.open(folder, reports) as opened:
        assert isinstance(opened.policy, Replicas)
        insight = ServerInsight(opened.metrics, on_preempted=slots.note_preemption)
        progress.engine = lambda: _engine_line(slots, insight)
        progress.status = ""
        progress.started = time.monotonic()
        watching = asyncio.create_task(insight.watch())
        job_tries = Tries(tries, note_failure, opened.failure, lambda: slots.limit)
        try:
            yield AskedModel(
                opened.policy, slots, progress, form, job_tries, dict(opened.facts or {}), events
            )
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching


@asynccontextmanager
async def open_asked_model_for(
    store: AnswerFolder,
    prepared: Prepared,
    form: RequestForm,
    progress: WorkProgress,
    tries: int,
    concurrency: int | None,
    ceiling: int = MOST,
) -> AsyncIterator[AskedModel]:
    """Call `open_asked_model` for a folder of answers. If the model cannot answer, end the caller's `async with` block
    without an error, and set `progress.stopped` to the reason."""
    model = open_asked_model(
        prepared, store.folder, form, progress, store.note_failure,
        tries=tries, concurrency=concurrency, ceiling=ceiling,
    )  # fmt: skip
    try:
        async with model as asking:
            yield asking
    except AbortedError as error:
        progress.stopped = str(error)


def _engine_line(slots: Slots, insight: ServerInsight) -> str:
    parts = [f"{slots.busy} of {slots.limit} slots at the model taken"]
    if (now := insight.now) is not None:
        parts.append(f"server {now.running:.0f} running, {now.waiting:.0f} waiting, KV {now.kv_usage:.0%}")
    return " · ".join(parts)


def refuse_scripted(config: PolicyConfig, flag: str) -> None:
    """Raise UserError for a scripted policy, which writes no text, and for an endpoint without a model name."""
    if config.is_scripted:
        raise UserError(
            f"{flag} {config.model} writes no text; give a checkpoint, a hub id, demo or http://host:port/v1"
        )
    if config.is_endpoint and config.model_name is None:
        raise UserError(
            f"{flag} {config.model}: give the name by which it serves the model: {flag}-name NAME"
        )
