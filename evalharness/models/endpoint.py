"""Send chat requests to an OpenAI-compatible endpoint.

`start` asks the server which model it serves (`GET /models`); `confirm` asks again after an episode's last reply.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import UserError
from evalharness.models.base import ContextOverflowError, PolicyError, Reply, RequestForm
from evalharness.models.completion import RequestFaultError, RequestRefusedError, TryFailedError, read_answer
from evalharness.models.opened import SILENT, Reports
from evalharness.models.sampling import (
    Sampling,
    optional_extensions,
    refused_fields,
    remedy,
    wants_other_limit,
    wants_stream,
    without,
)
from evalharness.models.served import (
    NotListedError,
    ServedModel,
    UnreadableListError,
    describe,
    require_same,
    require_still,
)
from evalharness.models.server_error import ServerError
from evalharness.models.template import prompt_opens_reasoning
from evalharness.models.tries import RetryPolicy, pause_before_retry
from evalharness.protocol.prompt import Message
from evalharness.protocol.react import STOP_SEQUENCES
from evalharness.protocol.reasoning import closes_reasoning
from evalharness.protocol.tools import TOOL
from evalharness.records.episode import FailedTry
from evalharness.records.identity import differences, select_stable

if TYPE_CHECKING:
    from evalharness.models.transport import RawAnswer, Transport

TURN_FORM = RequestForm(stop=STOP_SEQUENCES)
"""The form of a request for a turn."""
CONNECTIONS = 1024
"""Maximum number of connections of one client: above any useful concurrency."""
_CHAT = "/chat/completions"
START_WAIT = 60.0
"""Seconds for which `start` retries its first request while the server is too busy."""


class EndpointError(PolicyError):
    """The endpoint gave no usable answer within the allowed number and time of tries."""

    def __init__(self, message: str, tries: tuple[FailedTry, ...] = ()) -> None:
        super().__init__(message)
        self.tries = tries

    def details(self) -> dict[str, Any]:
        return {"tries": [asdict(failed) for failed in self.tries]}


class RefusedError(EndpointError):
    """The endpoint was too busy for every request during the whole time limit, so other episodes would fail, too."""

    refuses_all = True


def merge_system(messages: list[Message]) -> list[Message]:
    """Put the system text at the start of the first user message, for chat templates without a system role."""
    if not messages or messages[0]["role"] != "system":
        return messages
    if len(messages) < 2 or messages[1]["role"] != "user":
        return [{**messages[0], "role": "user"}, *messages[1:]]
    first = {"role": "user", "content": f"{messages[0]['content']}\n\n{messages[1]['content']}"}
    return [first, *messages[2:]]


def request_seed(seed: int, task_id: str, sample: int, turn: int, nonce: str = "") -> int:
    """Return the seed of a turn's request, at most 31 bits. The seed depends only on the arguments, so a repeated turn
    gets the same seed. `nonce` as in `RequestForm`."""
    which = f"{turn}/{nonce}" if nonce else f"{turn}"
    digest = hashlib.sha256(f"{seed}/{task_id}/{sample}/{which}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def episode_key(seed: int, task_id: str, sample: int) -> str:
    """Return a key that all turns of an episode share and that no other episode of the run has."""
    return hashlib.sha256(f"{seed}/{task_id}/{sample}".encode()).hexdigest()[:32]


class ChatEndpoint:
    """A policy: `POST {base_url}/chat/completions`. Call `start()` first, `close()` last."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        sampling: Sampling,
        api_key: str | None = None,
        connections: int = CONNECTIONS,
        timeout: float = 600.0,
        tries: int = 6,
        expected: ServedModel | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
        extra_fields: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        session_header: str = "",
        turn_form: RequestForm = TURN_FORM,
        reports: Reports = SILENT,
    ) -> None:
        """`timeout` is the seconds for one try, from first byte to last; a call, with all its tries and pauses, ends
        within three times `timeout`. `tries` is the maximum number of missing or broken answers. If the server is busy
        (429, or 503 with Retry-After), the request is repeated until the call's time is over; if no other request is
        answered either, only for `timeout` seconds. `template_kwargs` go to the chat template, `extra_fields` into
        every request. `expected` is the model that the server named before. `turn_form` is the form of later
        requests. `session_header` names the header for an episode's key ("": none)."""
        self.base_url = base_url.rstrip("/")
        self.model = model
        self.sampling = sampling
        self._sampling_fields = sampling.fields()
        self.max_model_len: int | None = None
        self.merges_system = False
        self.left_out: set[str] = set()
        """Fields that the server refuses, and that can be omitted without an effect."""
        self.opens_reasoning: bool | None = None
        """Whether the chat template begins the reasoning; None if the server does not show it."""
        self._tells_stop = True
        self._limit_field = "max_tokens"
        self._streams = False
        """Whether the server answers only with streams."""
        self._turn_form = turn_form
        self._template_kwargs = dict(template_kwargs or {})
        self._extra_fields = dict(extra_fields or {})
        self._api_key = api_key
        self._connections = connections
        self._opened: Transport | None = None
        self._timeout = timeout
        self._tries = tries
        self._expected = expected
        self._headers = dict(headers or {})
        self._session_header = session_header
        self._served: ServedModel | None = None
        self.source: Mapping[str, str | None] | None = None
        """Model and server that made the first reply. A reply of another model or server counts as a failed try."""
        self._looked = 0.0
        """Start time of the last successful check that the model is the same."""
        self._looking = asyncio.Lock()
        self._reports = reports
        self._retry_policy = RetryPolicy(timeout, reports.status)

    async def start(self) -> None:
        """Connect, ask which model is served, and request one reply.

        Raises UserError if the endpoint is down, refuses the key or the model, or serves an unexpected model;
        EndpointError if it is too busy.
        """
        from evalharness.models.transport import Transport  # importing aiohttp takes 0.2 s of CPU

        self._opened = Transport(
            self.base_url,
            self._api_key,
            connections=self._connections,
            timeout=self._timeout,
            headers=self._headers,
        )
        limit, unlisted = min(START_WAIT, self._timeout), None
        self._looked, self.source = time.monotonic(), None
        try:
            self._served = await describe(
                self._transport, self.model, wait_s=limit, on_status=self._reports.status
            )
        except (UnreadableListError, NotListedError) as error:
            if self._expected is not None:
                raise
            self._served, unlisted = None, error
        if self._expected is not None:
            require_same(self.base_url, self._expected, self._served)
        self._expected = self._served  # `start` is called again after a restart, and then checks this
        self.max_model_len = self._served.max_model_len if self._served else None
        self._retry_policy = RetryPolicy(limit, self._reports.status)
        try:
            await self._say_ok()
        except RequestRefusedError as error:
            if unlisted is None:
                raise
            raise RequestRefusedError(f"{unlisted}; {error}", error.server_error) from None
        except ContextOverflowError as error:
            raise UserError(
                f"{self.base_url} refuses even a request of a few words as too long: {error}; serve the model with a "
                "longer context (vLLM: --max-model-len 8192)"
            ) from None
        self.opens_reasoning = await self._ask_for_reasoning()
        self._retry_policy = RetryPolicy(self._timeout, self._reports.status)

    @property
    def _transport(self) -> Transport:
        if self._opened is None:
            raise RuntimeError("start() first")
        return self._opened

    async def _say_ok(self) -> None:
        """Request one reply. If the server refuses fields, omit these fields from this and all later requests."""
        while True:
            try:
                return await self._probe()
            except RequestRefusedError as error:
                if not self._streams and wants_stream(error.reason):
                    self._streams = True
                    continue
                if not isinstance(error, RequestFaultError):
                    raise
                refused = error
                if self._limit_field == "max_tokens" and wants_other_limit(error.reason):
                    self._limit_field = "max_completion_tokens"
                    continue
                named = refused_fields(error.reason, self._request([], 0, 1, self._turn_form)) - self.left_out
            if not named:
                break
            self.left_out |= named
        # Templates have many error texts for a system message (such as "roles must alternate"), and some servers do
        # not name the field that they refuse. So any error text gets both remedies: merge the system message, and
        # omit extra fields.
        named_only, more = self.left_out, optional_extensions(self._request([], 0, 1, self._turn_form))
        for merges_system, left_out in ((True, set[str]()), (False, more), (True, more)):
            self.merges_system, self.left_out = merges_system, named_only | left_out
            with contextlib.suppress(RequestFaultError):
                return await self._probe()
        self.merges_system, self.left_out = False, named_only
        hint = remedy(refused.reason, self._request([], 0, 1, self._turn_form))
        raise RequestFaultError(f"{refused}{hint}", refused.server_error)

    async def _probe(self) -> None:
        probe: list[Message] = [
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": "Say ok."},
        ]
        reply = await self.chat(probe, seed=0, form=replace(self._turn_form, max_tokens=4))
        self._tells_stop = reply.tells_stop

    def facts(self) -> dict[str, Any]:
        """Return, for the manifest, the form of the requests that the server accepts."""
        return {
            "sampling": without(self.sampling.fields(), self.left_out),
            "left_out": sorted(self.left_out),
            "system_in_first_message": self.merges_system,
            "tells_stop": self._tells_stop,
            **({} if self._limit_field == "max_tokens" else {"token_limit_field": self._limit_field}),
            **({"stream": True} if self._streams else {}),
            **({} if self.opens_reasoning is None else {"template_opens_reasoning": self.opens_reasoning}),
        }

    async def _ask_for_reasoning(self) -> bool | None:
        request: dict[str, Any] = {"model": self.model, "messages": [{"role": "user", "content": "Say ok."}]}
        if self._turn_form.tools:
            request["tools"] = [TOOL]
        if self._template_kwargs:
            request["chat_template_kwargs"] = self._template_kwargs
        return await prompt_opens_reasoning(self._transport, request)

    async def confirm(self) -> None:
        """Check that the server still serves the model of this run. One check serves all waiting callers.

        Raises UserError if the server serves another model, EndpointError if it does not answer within the limits for
        retries.
        """
        called, failed = time.monotonic(), list[FailedTry]()
        while True:
            began = time.monotonic()
            try:
                async with self._looking:
                    if self._looked < called:
                        looked = time.monotonic()  # `began` was before the wait for the lock
                        if self._served is not None:
                            await require_still(self._transport, self._served)
                        self._looked = looked
            except TryFailedError as failure:
                await self._wait_after(failure, failed, called, began)
            else:
                return self._retry_policy.note_answer()

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def chat(self, messages: list[Message], *, seed: int, form: RequestForm = TURN_FORM) -> Reply:
        """Request one reply; retry within the limits.

        Every try sends the same bytes, including the seed. Raises ContextOverflowError, UserError (the server refuses
        the request permanently, or serves another model), EndpointError.
        """
        limit = form.max_tokens or self.sampling.max_tokens
        spoken = merge_system(messages) if self.merges_system else messages
        body = json.dumps(without(self._request(spoken, seed, limit, form), self.left_out)).encode()
        headers = {self._session_header: form.episode} if self._session_header and form.episode else {}

        started, failed = time.monotonic(), list[FailedTry]()
        while True:
            began = time.monotonic()
            try:
                answer = await self._transport.send("POST", _CHAT, body, headers)
                reply = self._read(answer, began)
            except ContextOverflowError:
                self._retry_policy.note_answer()
                raise
            except TryFailedError as failure:
                await self._wait_after(failure, failed, started, began)
            else:
                self._retry_policy.note_answer()
                return self._with_open_reasoning(replace(reply, failed_tries=tuple(failed)))

    def _request(self, messages: object, seed: int, max_tokens: int, form: RequestForm) -> dict[str, Any]:
        request: dict[str, Any] = {
            **self._extra_fields,
            "model": self.model,
            "messages": messages,
            **self._sampling_fields,
            **({} if form.temperature is None else {"temperature": form.temperature}),
            self._limit_field: max_tokens,
            **({"stream": True, "stream_options": {"include_usage": True}} if self._streams else {}),
            **({"tools": [TOOL], "tool_choice": "auto"} if form.tools else {"stop": list(form.stop)}),
            "seed": seed,
            **({"chat_template_kwargs": self._template_kwargs} if self._template_kwargs else {}),
        }
        if form.response_format is not None:
            request["response_format"] = form.response_format
        return request

    def _with_open_reasoning(self, reply: Reply) -> Reply:
        """Mark a reply as reasoning if the prompt begins the reasoning and the reply was cut off before its end."""
        unmarked = not reply.reasoning and not closes_reasoning(reply.text)
        if self.opens_reasoning and unmarked and reply.finish_reason == "length":
            return replace(reply, text="", reasoning=reply.text)
        return reply

    async def _wait_after(
        self, failure: TryFailedError, failed: list[FailedTry], started: float, began: float
    ) -> None:
        """Append a failed try to `failed`, and wait before the next try. Raises EndpointError if no try is left.
        `started`: time of the call's first try; `began`: time of the failed try."""
        pause = pause_before_retry(failure, len(failed))
        now = time.monotonic()
        self._retry_policy.note_failure()
        refused = failure.kind == "busy" and self._retry_policy.is_spent
        over = now + pause > started + 2 * self._timeout
        broken = sum(earlier.kind != "busy" for earlier in failed) + (failure.kind != "busy")
        last = refused or over or broken >= self._tries
        failed.append(FailedTry(failure.kind, str(failure), now - began, waited=0.0 if last else pause))
        if last:
            longer = f", and it asks to wait {pause:.0f} s more" if over and failure.retry_after else ""
            raise (RefusedError if refused else EndpointError)(
                f"{self.base_url}: {failure}, {len(failed)} tries in {now - started:.0f} s{longer}",
                tuple(failed),
            ) from None
        self._retry_policy.note_retry(self.base_url, failure, pause)
        self._reports.retry()
        await asyncio.sleep(pause)

    def _read(self, answer: RawAnswer, began: float) -> Reply:
        """Read an answer. Raises the errors of `read_answer`, and TryFailedError if the reply's source has changed."""
        status, headers, raw = answer
        if status in (429, 503) and not ServerError.of(status, raw).is_used_up:
            self._reports.overload()
        fields = read_answer(self._transport.url(_CHAT), status, headers, raw)
        reply = Reply(**fields, latency=time.monotonic() - began)
        self.source = self.source or reply.source
        if changed := differences(select_stable(self.source), select_stable(reply.source)):
            raise TryFailedError(
                "another_model", f"another source than the first reply's: {'; '.join(changed)}"
            )
        return reply

    @property
    def metrics_url(self) -> str:
        """URL of a vLLM's metrics page."""
        return self._transport.url("/metrics", outside=True)
