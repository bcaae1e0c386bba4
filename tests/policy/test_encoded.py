"""A growing conversation encoded in parts is the same JSON, whatever became of it meanwhile."""

from __future__ import annotations

import json

from evalharness.policy.encoded import EncodedMessages
from evalharness.protocol.prompt import Message


def said(text: str, role: str = "user") -> Message:
    return {"role": role, "content": text}


def test_it_is_the_same_json_as_of_the_whole_conversation() -> None:
    encoded = EncodedMessages()
    messages = [said('Wörter \x00 "quoted" \ud83d', "system"), said("a")]
    grown = [list(messages)]
    for turn in range(3):
        messages += [said(f"reply {turn}", "assistant"), said(f"observation {turn}")]
        grown.append(list(messages))
    del messages[2:4]  # the context was full
    grown += [list(messages), [], [said("merged"), *messages[2:]], [said("merged"), *messages[2:]]]
    for conversation in grown:
        assert encoded.text(conversation) == json.dumps(conversation)
