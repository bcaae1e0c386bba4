"""Read a chat endpoint's answer: a reply, a failure that may be retried, or a refusal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http.client import responses
from typing import Any, NoReturn

from evalharness.base.errors import UserError
from evalharness.models.base import ContextOverflowError
from evalharness.models.server_error import ServerError, read_filter_error
from evalharness.protocol.tools import ToolCall
from evalharness.records.identity import ANSWERED_BY

_TOKENS_LIMIT = 2**31
"""No conversation has this many tokens: a larger count is wrong, and would not fit a table's column."""


class TryFailedError(Exception):
    """This try failed; another try may succeed."""

    def __init__(
        self, kind: str, reason: str, retry_after: float | None = None, status: int | None = None
    ) -> None:
        """`kind`: as in `FailedTry`; `retry_after`: seconds that the server asks to wait; `status`: HTTP status."""
        super().__init__(reason)
        self.kind = kind
        self.retry_after = retry_after
        self.status = status


class RequestRefusedError(UserError):
    """The server refuses this request permanently, so another try is useless; it may answer other requests."""

    def __init__(self, text: str, server_error: ServerError) -> None:
        super().__init__(text)
        self.server_error = server_error

    @property
    def status(self) -> int:
        return self.server_error.status

    @property
    def reason(self) -> str:
        """The server's error text."""
        return self.server_error.message

    @property
    def refuses_all(self) -> bool:
        """The server refuses the key or the account, so it refuses every other request, too."""
        return self.status in (401, 402, 403, 429)


class RequestFaultError(RequestRefusedError):
    """The server says that the request is wrong (400, 422); it may accept the request with other fields."""


class ContentFilteredError(RequestFaultError):
    """The server's content filter withholds the reply. The model itself did not refuse to answer."""


class ErrorInsteadError(Exception):
    """An answer with status 200 contains an error."""

    def __init__(self, server_error: ServerError) -> None:
        super().__init__(server_error.message)
        self.server_error = server_error


def read_answer(url: str, status: int, headers: Mapping[str, str], raw: bytes | bytearray) -> dict[str, Any]:
    """Return the fields of a Reply.

    Raises TryFailedError, ContextOverflowError, or RequestRefusedError if the server refuses the request permanently.
    """
    if status == 200:
        try:
            return read_completion(raw)
        except ErrorInsteadError as error:
            return _refuse(url, headers, error.server_error)
    return _refuse(url, headers, ServerError.of(status, raw))


def _refuse(url: str, headers: Mapping[str, str], server_error: ServerError) -> NoReturn:
    status, message = server_error.status, server_error.message
    if status >= 400 and server_error.is_context_full:
        raise ContextOverflowError(message)
    if server_error.is_filtered:
        raise ContentFilteredError(f"{url} filters contents (HTTP {status}): {message}", server_error)
    if status == 429 and server_error.is_used_up:
        raise RequestRefusedError(f"{url} refuses the request (HTTP 429): {message}", server_error)
    if status in (408, 409, 425, 429) or status >= 500:
        wait = retry_after(headers)
        busy = status == 429 or (status == 503 and wait is not None)
        raise TryFailedError("busy" if busy else "server_error", f"HTTP {status}: {message}", wait, status)
    if status < 200:
        raise TryFailedError("invalid", f"unexpected HTTP {status}")
    if status < 400:
        named = responses.get(status, "unknown")
        what = f"with {message!r}" if message else "without a text"
        raise RequestRefusedError(
            f"{url} answers with HTTP {status} ({named}) {what}, but a reply has status 200: is this the "
            "address of a chat endpoint, or of a gateway?",
            server_error,
        )
    hint = "; does the URL end in /v1, and is it the model's name?" if status == 404 else ""
    refused = RequestFaultError if status in (400, 422) else RequestRefusedError
    raise refused(f"{url} refuses the request (HTTP {status}): {message}{hint}", server_error)


def refuses_response_format(message: str) -> bool:
    text = message.lower()
    return any(word in text for word in ("response_format", "json_schema", "guided", "structured output"))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in the header Retry-After (RFC 9110, section 10.2.3); for a date, the seconds since `Date`."""
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
"""Finish reasons of incomplete replies: the server stops (vLLM, SGLang), or a router's provider fails (OpenRouter)."""


def read_completion(raw: bytes | bytearray) -> dict[str, Any]:
    """Return the fields of a Reply. Raises TryFailedError if the answer is not a chat completion, ErrorInsteadError if
    it is an error."""
    try:
        body = _join_stream(raw) if raw.lstrip().startswith((b"data:", b"event:", b":")) else json.loads(raw)
        if error := _find_error(body):
            raise ErrorInsteadError(ServerError.of(200, json.dumps(error).encode()))
        choice: dict[str, Any] = {"finish_reason": "content_filter"}
        if body["choices"] or not _blocks(body):
            choice = body["choices"][0]
        finish_reason = _word(choice.get("finish_reason")) or "stop"
        if server_error := read_filter_error(finish_reason):  # some servers send no message with this reason
            raise ErrorInsteadError(server_error)
        message = choice["message"]
        text, beside = _parts(message.get("content"))
        text = text or message.get("refusal") or ""  # OpenAI sends the model's own refusal separately
        named = (
            message.get(key) for key in ("reasoning_content", "reasoning", "thinking", "reasoning_details")
        )
        reasoning = "".join(_parts(next(filter(None, named), ""))) or beside
        usage = body.get("usage") or {}
        if not isinstance(text, str) or not isinstance(reasoning, str):
            raise TypeError("content is not text")
        # JSON can contain half a surrogate pair, which cannot be written as UTF-8.
        text, reasoning = (part.encode("utf-8", "replace").decode() for part in (text, reasoning))
        if finish_reason in _BROKEN_OFF:
            raise TryFailedError("server_error", f"the server ended its reply early ({finish_reason})")
        stopped_by = choice.get("stop_reason", choice.get("matched_stop"))  # keys of vLLM and of SGLang
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
    # RecursionError: thousands of nested brackets.
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise TryFailedError(
            "invalid", f"not a chat completion ({type(error).__name__}: {error}): {bytes(raw[:80])!r}"
        ) from None


def _join_stream(raw: bytes | bytearray) -> dict[str, Any]:
    """Join the events of a stream to one completion, for servers that only stream. Raises the errors that
    `read_completion` catches, and TryFailedError if the stream ends early."""
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
            # vLLM sends `stop_reason: null` if no stop sequence ended the reply.
            choice |= {key: value for key, value in part.items() if value is not None or key not in choice}
    if not body.get("error") and not choice.get("finish_reason") and b"[DONE]" not in lines:
        raise TryFailedError("truncated", "the stream ended before the end of the reply")
    message["tool_calls"] = list(calls.values())
    return {**body, "choices": [{**choice, "message": message}]} if choice else body


def _join_call(call: dict[str, Any], part: Mapping[str, Any]) -> None:
    function = call.setdefault("function", {"name": "", "arguments": ""})
    call["id"] = call.get("id") or part.get("id")
    for key, value in (part.get("function") or {}).items():
        function[key] = function.get(key, "") + (value or "")


_ANSWER_KINDS = ("text", "output_text", "refusal")
"""Types of the parts of a message that are its text; the text of all other types is reasoning."""
_TEXT_KEYS = ("text", "thinking", "reasoning", "summary", "refusal", "content")


def _parts(content: Any) -> tuple[str, str]:
    """Return (text, reasoning) of a message's content: a text, or a list of parts (Mistral, Anthropic, OpenRouter).
    Raises the errors that `read_completion` catches."""
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return content or "", ""
    texts = {True: "", False: ""}
    for part in content:
        if isinstance(part, str):
            texts[False] += part
            continue
        kind = str(part.get("type", "text"))
        inside = next((part[key] for key in _TEXT_KEYS if part.get(key)), "")
        texts[kind not in _ANSWER_KINDS] += "".join(_parts(inside))
    return texts[False], texts[True]


def _find_error(body: Any) -> Any:
    """Return the error in an answer with status 200, which can follow half a reply (OpenRouter, streams)."""
    if isinstance(body, list):
        return next(filter(None, map(_find_error, body[:1])), None)
    choices = body.get("choices")
    error = (choices[0].get("error") if choices else None) or body.get("error")
    return {"error": error} if error else None


def _blocks(body: Mapping[str, Any]) -> bool:
    """Return whether an answer without a choice says that a content filter blocked the prompt (Gemini)."""
    feedback = body.get("promptFeedback") or body.get("prompt_feedback") or {}
    return bool(feedback.get("blockReason") or feedback.get("block_reason"))


def _source(body: Mapping[str, Any]) -> dict[str, str | None]:
    places = (body, body.get("metadata"), body.get("sglext"))  # last two: older and newer SGLang
    version = next(
        (
            place["weight_version"]
            for place in places
            if isinstance(place, dict) and "weight_version" in place
        ),
        None,
    )
    versions = {"system_fingerprint": _name(body.get("system_fingerprint")), "weight_version": _name(version)}
    return {ANSWERED_BY: _name(body.get("model"))} | {key: value for key, value in versions.items() if value}


def _word(value: Any) -> str:
    """Return a short ASCII word unchanged, and "" for anything else."""
    return value if isinstance(value, str) and value.isascii() and len(value) <= 40 else ""


def _name(value: Any) -> str | None:
    return value[:200].encode("utf-8", "replace").decode() if isinstance(value, str) else None


def _calls(listed: Any) -> tuple[ToolCall, ...]:
    """Return the tool calls. Raises the errors that `read_completion` catches."""

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
    counts = usage.get(details)
    return _count(counts.get(name)) if isinstance(counts, dict) else None


def _count(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < _TOKENS_LIMIT else None
