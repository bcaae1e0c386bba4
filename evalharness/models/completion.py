"""What a chat endpoint's answers mean: a reply, a reason to try again, or a refusal. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http.client import responses
from typing import Any

from evalharness.base.errors import UserError
from evalharness.models.base import ContextOverflowError
from evalharness.protocol.tools import ToolCall
from evalharness.records.tokens import TurnTokens

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

    def __init__(self, text: str, status: int, reason: str) -> None:
        super().__init__(text)
        self.status = status
        self.reason = reason
        """In the server's own words."""

    @property
    def refuses_all(self) -> bool:
        """The key or the account is refused, and with it every other request."""
        return self.status in (401, 402, 403, 429)


class RequestFaultError(RequestRefusedError):
    """The server says that it is the request's own fault (400, 422): another form of it may do."""


def read_answer(url: str, status: int, headers: Mapping[str, str], raw: bytes | bytearray) -> dict[str, Any]:
    """The fields of a Reply.

    Raises TryFailedError, ContextOverflowError, or RequestRefusedError where the server refuses the request for good.
    """
    if status == 200:
        return read_completion(raw)
    message = error_message(raw)
    if status in (400, 413, 422) and _is_context_overflow(message):
        raise ContextOverflowError(message)
    if status == 429 and is_used_up(raw):
        raise RequestRefusedError(f"{url} refuses the request (HTTP 429): {message}", status, message)
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
            status,
            message,
        )
    if status == 404:
        message += "; does the URL end in /v1, and is it the model's name?"
    refused = RequestFaultError if status in (400, 422) else RequestRefusedError
    raise refused(f"{url} refuses the request (HTTP {status}): {message}", status, message)


_USED_UP = frozenset({"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance"})


def is_used_up(raw: bytes | bytearray) -> bool:
    """Whether an answer says, by a code, that the account's money or quota is used up: waiting does not help then."""
    try:
        body = json.loads(raw)
        error = body.get("error", body)
        return isinstance(error, dict) and bool(_USED_UP & {error.get("code"), error.get("type")})
    except (ValueError, AttributeError, TypeError, RecursionError):
        return False


def _is_context_overflow(message: str) -> bool:
    text = message.lower()
    # "context length" and "context window"; llama.cpp says "context size".
    named = "context" in text and any(word in text for word in ("length", "window", "size"))
    return named or "max_model_len" in text


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


def error_message(raw: bytes | bytearray) -> str:
    """The server's own words, at most 500 characters."""
    try:
        body = json.loads(raw)
        error = body.get("error", body.get("message", body.get("detail", body)))
        text = error.get("message", error) if isinstance(error, dict) else error
    except (ValueError, AttributeError, RecursionError):
        text = raw.decode(errors="replace")
    return str(text).strip()[:500]


_BROKEN_OFF = ("abort", "error")
"""Reasons why a reply ended that are no end of it: the server is paused or ended (vLLM, SGLang), a provider behind a
router fails (OpenRouter)."""


def read_completion(raw: bytes | bytearray) -> dict[str, Any]:
    """The fields of a Reply. Raises TryFailedError when the answer is not a chat completion."""
    try:
        body = json.loads(raw)
        choice = body["choices"][0]
        message = choice["message"]
        text = message.get("content") or ""
        reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
        usage = body.get("usage") or {}
        if not isinstance(text, str) or not isinstance(reasoning, str):
            raise TypeError("content is not text")
        # JSON can spell half a surrogate pair; nothing downstream could write it as UTF-8.
        text, reasoning = (part.encode("utf-8", "replace").decode() for part in (text, reasoning))
        finish_reason = _word(choice.get("finish_reason")) or "stop"
        if finish_reason in _BROKEN_OFF:
            raise TryFailedError(
                "server_error", f"the server broke its reply off ({finish_reason}): {error_message(raw)}"
            )
        stopped_by = choice.get("stop_reason", choice.get("matched_stop"))  # vLLM; SGLang
        return {
            "text": text,
            "model": _name(body.get("model")),
            "reasoning": reasoning,
            "finish_reason": finish_reason,
            "stopped_by": stopped_by if isinstance(stopped_by, str) else None,
            "tells_stop": "stop_reason" in choice or "matched_stop" in choice,
            "prompt_tokens": _count(usage.get("prompt_tokens")),
            "completion_tokens": _count(usage.get("completion_tokens")),
            "reasoning_tokens": _detail(usage, "completion_tokens_details", "reasoning_tokens"),
            "cached_tokens": _detail(usage, "prompt_tokens_details", "cached_tokens"),
            "tokens": _tokens(body, choice),
            "calls": _calls(message.get("tool_calls")),
        }
    # RecursionError: brackets nested some thousand deep.
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise TryFailedError(
            "invalid", f"not a chat completion ({type(error).__name__}: {error}): {bytes(raw[:80])!r}"
        ) from None


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


def _tokens(body: Mapping[str, Any], choice: Mapping[str, Any]) -> TurnTokens | None:
    """None where the answer does not hold all of it. Raises what `read_completion` catches."""
    prompt, completion = body.get("prompt_token_ids"), choice.get("token_ids")
    listed = (choice.get("logprobs") or {}).get("content")
    if not (isinstance(prompt, list) and isinstance(completion, list) and isinstance(listed, list)):
        return None
    logprobs = [float(one["logprob"]) for one in listed]
    ids = [*prompt, *completion]
    if len(logprobs) != len(completion) or any(_count(one) is None for one in ids):
        return None
    return TurnTokens(tuple(prompt), tuple(completion), tuple(logprobs))


def _detail(usage: Mapping[str, Any], details: str, name: str) -> int | None:
    found = usage.get(details)
    return _count(found.get(name)) if isinstance(found, dict) else None


def _count(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < _TOKENS_LIMIT else None
