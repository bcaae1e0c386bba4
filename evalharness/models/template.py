"""Ask the server for token ids to find out whether the chat template itself begins the reasoning."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import UserError
from evalharness.models.completion import TryFailedError
from evalharness.protocol.reasoning import opens_reasoning

if TYPE_CHECKING:
    from evalharness.models.transport import Transport

_TAIL = 8
"""Number of tokens at the end of a prompt that are decoded: a reasoning marker has at most a few tokens."""


async def prompt_opens_reasoning(transport: Transport, request: Mapping[str, Any]) -> bool | None:
    """Return whether the rendered prompt ends inside a reasoning block; None if the server has no `/tokenize` like
    vLLM's. `request`: model, messages, and the other fields for the chat template."""
    try:
        tokens = (await _post(transport, "/tokenize", request)).get("tokens")
        if not isinstance(tokens, list) or not all(isinstance(token, int) for token in tokens):
            return None
        tail = {"model": request["model"], "tokens": tokens[-_TAIL:]}
        text = (await _post(transport, "/detokenize", tail)).get("prompt")
    except (TryFailedError, UserError, ValueError, RecursionError):
        return None
    return opens_reasoning(text) if isinstance(text, str) else None


async def _post(transport: Transport, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Send a request and return the answer. Raises ValueError if the answer is no JSON object."""
    status, _, raw = await transport.send("POST", path, json.dumps(body).encode(), outside=True, timeout=30.0)
    answer = json.loads(raw) if status == 200 else None
    if not isinstance(answer, dict):
        raise ValueError("no answer of this kind")
    return answer
