"""What a chat endpoint's answers mean: a reply, a reason to try again, or a refusal. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http.client import responses
from typing import Any, NoReturn

from evalharness.base.errors import UserError
from evalharness.models.base import ContextOverflowError
from evalharness.models.server_error import ServerError, filtered
from evalharness.protocol.tools import ToolCall
from evalharness.records.identity import ANSWERED_BY

_TOKENS_LIMIT = 2**31
"""No conversation has as many tokens: a count above it is noise, and would not fit a table's column."""


class TryFailedError(Exception):
    """This try failed in a way that a further one may not."""

    def __init__(
        self, kind: str, reason: str, retry_after: float | None = None, status: int | None = None
    ) -> None:
        """`kind` as in `FailedTry`; `retry_after` is how many seconds the server asks to wait; `status` is of an answer
        that says that the server is busy or broken."""
        super().__init__(reason)
        self.kind = kind
        self.retry_after = retry_after
        self.status = status


class RequestRefusedError(UserError):
    """The server refuses this request for good; others it may answer."""

    def __init__(self, text: str, said: ServerError) -> None:
        super().__init__(text)
        self.said = said

    @property
    def status(self) -> int:
        return self.said.status

    @property
    def reason(self) -> str:
        """In the server's own words."""
        return self.said.message

    @property
    def refuses_all(self) -> bool:
        """The key or the account is refused, and with it every other request."""
        return self.status in (401, 402, 403, 429)


class RequestFaultError(RequestRefusedError):
    """The server says that it is the request's own fault (400, 422): another form of it may do."""


class ContentFilteredError(RequestFaultError):
    """The server's filter of contents withholds the reply: no refusal of the model's."""


class ErrorInsteadError(Exception):
    """An answer with status 200 is an error."""

    def __init__(self, said: ServerError) -> None:
        super().__init__(said.message)
        self.said = said


def read_answer(url: str, status: int, headers: Mapping[str, str], raw: bytes | bytearray) -> dict[str, Any]:
    """The fields of a Reply.

    Raises TryFailedError, ContextOverflowError, or RequestRefusedError where the server refuses the request for good.
    """
    if status == 200:
        try:
            return read_completion(raw)
        except ErrorInsteadError as error:
            return _refuse(url, headers, error.said)
    return _refuse(url, headers, ServerError.of(status, raw))


def _refuse(url: str, headers: Mapping[str, str], said: ServerError) -> NoReturn:
    status, message = said.status, said.message
    if status >= 400 and said.is_context_full:
        raise ContextOverflowError(message)
    if said.is_filtered:
        raise ContentFilteredError(f"{url} filters contents (HTTP {status}): {message}", said)
    if status == 429 and said.is_used_up:
        raise RequestRefusedError(f"{url} refuses the request (HTTP 429): {message}", said)
    if status in (408, 409, 425, 429) or status >= 500:
        wait = retry_after(headers)
        busy = status == 429 or (status == 503 and wait is not None)
        raise TryFailedError("busy" if busy else "server_error", f"HTTP {status}: {message}", wait, status)
    if status < 200:
        raise TryFailedError("invalid", f"HTTP {status}, which was not asked for")
    if status < 400:
        named = responses.get(status, "unknown")
        what = f"with {message!r}" if message else "without a text"
        raise RequestRefusedError(
            f"{url} answers with HTTP {status} ({named}) {what}, where a reply comes with 200: is this the "
            "address of a chat endpoint, or a gateway's?",
            said,
        )
    hint = "; does the URL end in /v1, and is it the model's name?" if status == 404 else ""
    refused = RequestFaultError if status in (400, 422) else RequestRefusedError
    raise refused(f"{url} refuses the request (HTTP {status}): {message}{hint}", said)


def refuses_response_format(message: str) -> bool:
    text = message.lower()
    return any(word in text for word in ("response_format", "json_schema", "guided", "structured output"))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds (RFC 9110, section 10.2.3). A date is read against the server's own clock, not ours, which may differ."""
    value = headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return float(value) if len(value) < 10 else None
    try:
        return max(
            0.0, (parsedate_to_datetime(value) - parsedate_to_datetime(headers["Date"])).total_seconds()
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


_BROKEN_OFF = ("abort", "error")
"""Reasons why a reply ended that are no end of it: the server is paused or ended (vLLM, SGLang), a provider behind a
router fails (OpenRouter)."""


def read_completion(raw: bytes | bytearray) -> dict[str, Any]:
    """The fields of a Reply. Raises TryFailedError when the answer is not a chat completion, ErrorInsteadError when it
    is an error."""
    try:
        body = _joined(raw) if raw.lstrip().startswith((b"data:", b"event:", b":")) else json.loads(raw)
        if error := _error_in(body):
            raise ErrorInsteadError(ServerError.of(200, json.dumps(error).encode()))
        choice: dict[str, Any] = {"finish_reason": "content_filter"}
        if body["choices"] or not _blocks(body):
            choice = body["choices"][0]
        finish_reason = _word(choice.get("finish_reason")) or "stop"
        if said := filtered(finish_reason):  # some send no message then
            raise ErrorInsteadError(said)
        message = choice["message"]
        text, beside = _parts(message.get("content"))
        text = text or message.get("refusal") or ""  # the model's own words, which OpenAI sends apart
        named = (
            message.get(key) for key in ("reasoning_content", "reasoning", "thinking", "reasoning_details")
        )
        reasoning = "".join(_parts(next(filter(None, named), ""))) or beside
        usage = body.get("usage") or {}
        if not isinstance(text, str) or not isinstance(reasoning, str):
            raise TypeError("content is not text")
        # JSON can spell half a surrogate pair; nothing downstream could write it as UTF-8.
        text, reasoning = (part.encode("utf-8", "replace").decode() for part in (text, reasoning))
        if finish_reason in _BROKEN_OFF:
            raise TryFailedError("server_error", f"the server broke its reply off ({finish_reason})")
        stopped_by = choice.get("stop_reason", choice.get("matched_stop"))  # vLLM; SGLang
        return {
            "text": text,
            "source": _source(body),
            "reasoning": reasoning,
            "finish_reason": finish_reason,
            "stopped_by": stopped_by if isinstance(stopped_by, str) else None,
            "tells_stop": "stop_reason" in choice or "matched_stop" in choice,
            "prompt_tokens": _count(usage.get("prompt_tokens")),
            "completion_tokens": _count(usage.get("completion_tokens")),
            "reasoning_tokens": _detail(usage, "completion_tokens_details", "reasoning_tokens"),
            "cached_tokens": _detail(usage, "prompt_tokens_details", "cached_tokens"),
            "calls": _calls(message.get("tool_calls")),
        }
    # RecursionError: brackets nested some thousand deep.
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise TryFailedError(
            "invalid", f"not a chat completion ({type(error).__name__}: {error}): {bytes(raw[:80])!r}"
        ) from None


def _joined(raw: bytes | bytearray) -> dict[str, Any]:
    """The completion that a stream of events makes, for servers that only stream. Raises what `read_completion`
    catches; TryFailedError where the stream breaks off."""
    body: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    message: dict[str, Any] = {}
    calls: dict[int, dict[str, Any]] = {}
    lines = [line[5:].strip() for line in bytes(raw).splitlines() if line.startswith(b"data:")]
    for chunk in (json.loads(line) for line in lines if line not in (b"", b"[DONE]")):
        body |= {key: value for key, value in chunk.items() if value is not None and key != "choices"}
        for part in (chunk.get("choices") or ())[:1]:
            for key, value in (part.get("delta") or part.get("message") or {}).items():
                if key == "tool_calls":
                    for number, call in enumerate(value or ()):
                        _join_call(calls.setdefault(call.get("index", number), {}), call)
                elif isinstance(value, str | list) and key != "role":
                    message[key] = message[key] + value if key in message else value
            # vLLM says `stop_reason: null` where no stop sequence ended the reply.
            choice |= {key: value for key, value in part.items() if value is not None or key not in choice}
    if not body.get("error") and not choice.get("finish_reason") and b"[DONE]" not in lines:
        raise TryFailedError("truncated", "the stream broke off before the reply's end")
    message["tool_calls"] = list(calls.values())
    return {**body, "choices": [{**choice, "message": message}]} if choice else body


def _join_call(call: dict[str, Any], part: Mapping[str, Any]) -> None:
    function = call.setdefault("function", {"name": "", "arguments": ""})
    call["id"] = call.get("id") or part.get("id")
    for key, value in (part.get("function") or {}).items():
        function[key] = function.get(key, "") + (value or "")


_ANSWER_KINDS = ("text", "output_text", "refusal")
"""Types of a part that are read; nothing in other ones is carried out."""
_TEXT_KEYS = ("text", "thinking", "reasoning", "summary", "refusal", "content")


def _parts(content: Any) -> tuple[str, str]:
    """(text, reasoning) of a message's content: a text, or a list of parts (Mistral, Anthropic, OpenRouter). Raises
    what `read_completion` catches."""
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return content or "", ""
    found = {True: "", False: ""}
    for part in content:
        if isinstance(part, str):
            found[False] += part
            continue
        kind = str(part.get("type", "text"))
        inside = next((part[key] for key in _TEXT_KEYS if part.get(key)), "")
        found[kind not in _ANSWER_KINDS] += "".join(_parts(inside))
    return found[False], found[True]


def _error_in(body: Any) -> Any:
    """The error in an answer with status 200: instead of a reply, or (OpenRouter, streams) beside half of one."""
    if isinstance(body, list):
        return next(filter(None, map(_error_in, body[:1])), None)
    choices = body.get("choices")
    error = (choices[0].get("error") if choices else None) or body.get("error")
    return {"error": error} if error else None


def _blocks(body: Mapping[str, Any]) -> bool:
    """Whether an answer without a choice says that a filter took the prompt (Gemini)."""
    feedback = body.get("promptFeedback") or body.get("prompt_feedback") or {}
    return bool(feedback.get("blockReason") or feedback.get("block_reason"))


def _source(body: Mapping[str, Any]) -> dict[str, str | None]:
    versions = (body, body.get("metadata"), body.get("sglext"))  # SGLang, older and newer
    version = next(
        (v["weight_version"] for v in versions if isinstance(v, dict) and "weight_version" in v), None
    )
    told = {"system_fingerprint": _name(body.get("system_fingerprint")), "weight_version": _name(version)}
    return {ANSWERED_BY: _name(body.get("model"))} | {key: value for key, value in told.items() if value}


def _word(value: Any) -> str:
    """A short ASCII word as it is, anything else as nothing."""
    return value if isinstance(value, str) and value.isascii() and len(value) <= 40 else ""


def _name(value: Any) -> str | None:
    return value[:200].encode("utf-8", "replace").decode() if isinstance(value, str) else None


def _calls(listed: Any) -> tuple[ToolCall, ...]:
    """Raises what `read_completion` catches."""

    def text(value: Any) -> str:
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else json.dumps(value)

    return tuple(
        ToolCall(
            text(call.get("id") or "call"),
            text(call["function"]["name"]),
            text(call["function"]["arguments"]),
        )
        for call in listed or ()
    )


def _detail(usage: Mapping[str, Any], details: str, name: str) -> int | None:
    found = usage.get(details)
    return _count(found.get(name)) if isinstance(found, dict) else None


def _count(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < _TOKENS_LIMIT else None
