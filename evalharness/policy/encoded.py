"""The JSON of a conversation that grows."""

from __future__ import annotations

import json
from collections.abc import Sequence

from evalharness.protocol.prompt import Message


class EncodedMessages:
    """What was encoded for the turn before is not encoded again: with 31 messages that was a quarter of the CPU time of
    a request. Nobody changes a message in place; a conversation that lost old turns is taken from where it differs."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._parts: list[str] = []

    def text(self, messages: Sequence[Message]) -> str:
        """To the letter what `json.dumps(messages)` gives."""
        known = 0
        for old, new in zip(self._messages, messages, strict=False):
            if old is not new and old != new:
                break
            known += 1
        self._parts[known:] = map(json.dumps, messages[known:])
        self._messages = list(messages)
        return f"[{', '.join(self._parts)}]"
