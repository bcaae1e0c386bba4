"""Limits and errors of JSON messages over HTTP and WebSockets."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import ClientError, web
from pydantic import BaseModel, ValidationError

from evalharness.base.errors import EvalharnessError
from evalharness.door.door import Door

MOST_BYTES = 2 << 20
"""Largest message in bytes, enough for the longest reply in any script. A longer WebSocket message closes the
connection with code 1009; a longer HTTP request is refused with status 413."""
_MOST_KEYS = 256
"""Largest number of keys in a JSON object. Checking 90,000 unknown keys took a second, in which no client got an
answer."""
_MOST_TEXT = 1000
"""Largest number of characters in an error message, which may quote the client's message."""
_LOG = logging.getLogger("evalharness")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Refuse = Callable[[Exception], "RefusedError | None"]
"""Converts an exception of one of the two servers to a RefusedError; None if it does not know the exception."""


class RefusedError(Exception):
    """An error that the client gets: OpenEnv's error code, a text, and the HTTP status."""

    def __init__(self, code: str, text: str, status: int) -> None:
        super().__init__(text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}...")
        self.code, self.status = code, status

    @property
    def message(self) -> dict[str, Any]:
        """The error as a WebSocket message."""
        return {"type": "error", "data": {"message": str(self), "code": self.code}}

    @property
    def response(self) -> web.Response:
        headers = {"Retry-After": "1"} if self.status == 429 else {}
        body = {"detail": str(self), "code": self.code}
        return web.json_response(body, status=self.status, headers=headers)


def to_refusal(error: Exception, own: Refuse = lambda error: None) -> RefusedError:
    match error:
        case RefusedError():
            return error
        case ValidationError():
            # Pydantic's own text repeats the input, which can be a megabyte.
            wrong = [
                f"{'.'.join(map(str, e['loc']))[:80] or 'message'}: {e['msg'][:200]}"
                for e in error.errors(include_url=False, include_input=False)[:5]
            ]
            return RefusedError("VALIDATION_ERROR", "; ".join(wrong), 422)
    if (known := own(error)) is not None:
        return known
    if isinstance(error, EvalharnessError):
        return RefusedError("EXECUTION_ERROR", f"{error}; the episode is void: reset", 500)
    _LOG.error("a session failed: %s: %s", type(error).__name__, error)
    return RefusedError("EXECUTION_ERROR", f"the session failed ({type(error).__name__}): reset", 500)


def parse_message(raw: str | bytes) -> dict[str, Any]:
    """Parse a message. Raises RefusedError if it is no JSON object or has too many keys."""
    try:
        value = json.loads(raw, object_pairs_hook=_limit_keys)
    except (ValueError, RecursionError) as error:
        raise RefusedError("INVALID_JSON", f"not JSON: {str(error)[:200]}", 400) from None
    if not isinstance(value, dict):
        raise RefusedError("INVALID_JSON", "a message is a JSON object", 400)
    return value


def _limit_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > _MOST_KEYS:
        raise RefusedError("VALIDATION_ERROR", f"an object with more than {_MOST_KEYS} keys", 422)
    return dict(pairs)


async def read_body(request: web.Request, model: type[BaseModel]) -> Any:
    """Read and validate a request's body. Raises RefusedError, ValidationError."""
    try:
        raw = await request.read()
    except (ClientError, OSError):  # not logged, because a stranger could fill the log
        raise RefusedError("INVALID_JSON", "the request ended before its end", 400) from None
    return model.model_validate(parse_message(raw) if raw else {})


def make_guard(door: Door, own: Refuse = lambda error: None) -> Any:
    """Return a middleware that refuses clients without the token, and answers every exception with a JSON error."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if (refusal := door.find_refusal(request)) is not None:
            raise refusal
        try:
            return await handler(request)
        except (web.HTTPException, asyncio.CancelledError):
            raise
        except Exception as error:
            return to_refusal(error, own).response

    return guard
