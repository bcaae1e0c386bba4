"""A model behind an OpenAI-compatible chat endpoint.

Which model is served is looked at (`GET /models`) at the start, and by `confirm` after the last reply of what is kept.
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
    beyond_openai,
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
from evalharness.records.identity import differences, telling

if TYPE_CHECKING:
    from evalharness.models.transport import Answered, Transport

TURN_FORM = RequestForm(stop=STOP_SEQUENCES)
"""Of a turn in an episode."""
_CHAT = "/chat/completions"
START_WAIT = 60.0
"""Seconds for which a server may be too busy for the first request of all, before anything is played."""


class EndpointError(PolicyError):
    """The endpoint did not give a usable answer within the bounds set for retrying."""

    def __init__(self, message: str, tries: tuple[FailedTry, ...] = ()) -> None:
        super().__init__(message)
        self.tries = tries

    def details(self) -> dict[str, Any]:
        return {"tries": [asdict(failed) for failed in self.tries]}


class RefusedError(EndpointError):
    """The endpoint has refused every request for so long that further ones would be refused, too."""

    refuses_all = True


def merge_system(messages: list[Message]) -> list[Message]:
    """Put the system text at the head of the first user message, for chat templates without a system role."""
    if not messages or messages[0]["role"] != "system":
        return messages
    if len(messages) < 2 or messages[1]["role"] != "user":
        return [{**messages[0], "role": "user"}, *messages[1:]]
    first = {"role": "user", "content": f"{messages[0]['content']}\n\n{messages[1]['content']}"}
    return [first, *messages[2:]]


def request_seed(seed: int, task_id: str, sample: int, turn: int, nonce: str = "") -> int:
    """A seed that is the same whenever the same turn is asked again, in whatever order; fits 31 bits. `nonce` as in
    `RequestForm`."""
    which = f"{turn}/{nonce}" if nonce else f"{turn}"
    digest = hashlib.sha256(f"{seed}/{task_id}/{sample}/{which}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def episode_key(seed: int, task_id: str, sample: int) -> str:
    """The same for all turns of an episode, and for no other episode of the run."""
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
        connections: int = 512,
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
        """`timeout` is seconds for one try, first byte to last; a call ends within three times that, all tries and
        pauses included. `tries` bounds the answers that are missing or broken; a server that says it is busy (429,
        or 503 with Retry-After) is asked again for as long as the call's time lasts, but no longer than `timeout`
        where nobody else is answered either. `template_kwargs` go to the chat template, `extra_fields` into every
        request. `expected` is what the server said of its model before. `turn_form` is how a turn will be asked for.
        `session_header` names the header that carries an episode's key ("": none). `reports.status` gets in words what
        keeps failing ('': no more)."""
        self.base_url = base_url.rstrip("/")
        self.model = model
        self.sampling = sampling
        self._sampling_fields = sampling.fields()
        self.max_model_len: int | None = None
        self.merges_system = False
        self.left_out: set[str] = set()
        """Fields that the server refuses, and that change nothing where they are missing."""
        self.opens_reasoning: bool | None = None
        """The chat template begins the reasoning; None if the server does not let us see."""
        self._tells_stop = True
        self._limit_field = "max_tokens"
        self._streams = False
        """The server answers only with streams."""
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
        """Of the first reply. A reply of another source is no answer."""
        self._looked = 0.0
        """When the last look began after which the model was known to be the same."""
        self._looking = asyncio.Lock()
        self._reports = reports
        self._retry_policy = RetryPolicy(timeout, reports.status)

    async def start(self) -> None:
        """Connect, ask for the model and then for one real reply.

        Raises UserError when the endpoint is down, refuses the request for the key or the model, or serves another one
        than expected; EndpointError when it is too busy.
        """
        from evalharness.models.transport import Transport  # aiohttp: a fifth of a second of CPU

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
        self._expected = self._served  # also after a restart
        self.max_model_len = self._served.max_model_len if self._served else None
        self._retry_policy = RetryPolicy(limit, self._reports.status)
        try:
            await self._say_ok()
        except RequestRefusedError as error:
            if unlisted is None:
                raise
            raise RequestRefusedError(f"{unlisted}; {error}", error.said) from None
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
        """One real reply; finds out what of a request this server does not take, and leaves it out from then on."""
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
        # Templates refuse a system message in many words ("roles must alternate", say), and some servers refuse a
        # field without naming it. For any error text we try both remedies: merge the system message, and leave
        # out extra fields.
        named_only, more = self.left_out, beyond_openai(self._request([], 0, 1, self._turn_form))
        for merges_system, left_out in ((True, set[str]()), (False, more), (True, more)):
            self.merges_system, self.left_out = merges_system, named_only | left_out
            with contextlib.suppress(RequestFaultError):
                return await self._probe()
        self.merges_system, self.left_out = False, named_only
        hint = remedy(refused.reason, self._request([], 0, 1, self._turn_form))
        raise RequestFaultError(f"{refused}{hint}", refused.said)

    async def _probe(self) -> None:
        probe: list[Message] = [
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": "Say ok."},
        ]
        reply = await self.chat(probe, seed=0, form=replace(self._turn_form, max_tokens=4))
        self._tells_stop = reply.tells_stop

    def facts(self) -> dict[str, Any]:
        """How this server is asked, as far as only the start has shown it."""
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
        """Return once the server has said anew that it serves the model of this run. One look serves all who wait.

        Raises UserError where it serves another one, EndpointError where it does not say which within the bounds set
        for retrying.
        """
        asked, failed = time.monotonic(), list[FailedTry]()
        while True:
            began = time.monotonic()
            try:
                async with self._looking:
                    if self._looked < asked:
                        looked = time.monotonic()  # after waiting for others' looks
                        if self._served is not None:
                            await require_still(self._transport, self._served)
                        self._looked = looked
            except TryFailedError as failure:
                await self._wait_after(failure, failed, asked, began)
            else:
                return self._retry_policy.note_answer()

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def chat(self, messages: list[Message], *, seed: int, form: RequestForm = TURN_FORM) -> Reply:
        """One reply, tried again within bounds.

        The same bytes at every try: with the seed in them, a turn that is asked again is the same request. Raises
        ContextOverflowError, UserError (the server refuses the request for good, or serves another model),
        EndpointError.
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
        """Where the prompt itself begins the reasoning, a reply that was cut off inside it shows no marker."""
        unmarked = not reply.reasoning and not closes_reasoning(reply.text)
        if self.opens_reasoning and unmarked and reply.finish_reason == "length":
            return replace(reply, text="", reasoning=reply.text)
        return reply

    async def _wait_after(
        self, failure: TryFailedError, failed: list[FailedTry], started: float, began: float
    ) -> None:
        """Note a failed try of a call that `started` then, and wait for the next one. Raises EndpointError if there is
        no other."""
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

    def _read(self, answer: Answered, began: float) -> Reply:
        """Raises what `read_answer` raises, and TryFailedError for a reply of another source than the first."""
        status, headers, raw = answer
        if status in (429, 503) and not ServerError.of(status, raw).is_used_up:
            self._reports.overload()
        fields = read_answer(self._transport.url(_CHAT), status, headers, raw)
        reply = Reply(**fields, latency=time.monotonic() - began)
        self.source = self.source or reply.source
        if changed := differences(telling(self.source), telling(reply.source)):
            raise TryFailedError(
                "another_model", f"another source than the first reply's: {'; '.join(changed)}"
            )
        return reply

    @property
    def metrics_url(self) -> str:
        """Where a vLLM reports how busy it is."""
        return self._transport.url("/metrics", outside=True)
