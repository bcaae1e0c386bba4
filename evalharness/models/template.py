"""What a chat template does with a growing conversation, found out by asking the server for token ids.

A server's prefix cache, and training on recorded turns, depend on a template that only appends: the prompt of a turn
begins with the whole prompt of the turn before. Some templates drop reasoning from earlier turns, or end a prompt with
an empty reasoning block that later prompts do not have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import UserError
from evalharness.models.completion import TryFailedError
from evalharness.protocol import react, tools
from evalharness.protocol.prompt import Message
from evalharness.protocol.react import ParsedReply
from evalharness.records.tokens import common_prefix

if TYPE_CHECKING:
    from evalharness.models.transport import Transport

_TURNS = 4
_TAIL = 8
"""Tokens at the end of a prompt that are turned back into text: a reasoning marker has at most a few."""


@dataclass(frozen=True)
class Template:
    """What three growing conversations have shown."""

    append_only: bool
    lost_tokens: float
    """Tokens at the end of a prompt that the next prompt does not begin with; a mean over the turns."""
    opens_reasoning: bool
    """The prompt itself begins the reasoning, so that a reply has no marker where it starts."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def notice(self) -> str | None:
        """One line for a person; None where there is nothing to say."""
        if self.append_only:
            return None
        return (
            "the chat template is not append-only: a prompt does not go on with the last tokens of the one before "
            f"({self.lost_tokens:.3g} on average), so the prefix cache holds less; see docs/server.md"
        )


def growing_conversations(*, keep_thinking: bool, by_tools: bool = False) -> list[list[list[Message]]]:
    """Three conversations, each as the model is sent it turn after turn. `by_tools`: it acts by tool calls."""
    head: list[Message] = [
        {"role": "system", "content": "You are a household robot."},
        {"role": "user", "content": "Goal: put a mug on the desk.\nObservation: You are in a room."},
    ]
    replies = (
        ParsedReply("", "", "Thought: The mug may be on shelf 1.\nAction: go to shelf 1", ()),
        ParsedReply("", "", "**Thought:** Déjà vu …\n\n  Action:\tlook", ()),
        ParsedReply("", "", "Thought: x\nAction: take mug 1", (), "First the mug.\n\nThen the desk."),
    )
    found = []
    for reply in replies:
        seen = "On the shelf 1, you see a mug 1.\n\nNothing else.  "
        if by_tools:
            call = tools.ToolCall("call", tools.NAME, "")  # its command is the reply's action
            turn = tools.turn_messages(
                replace(reply, action="look"), [call], seen, keep_thinking=keep_thinking
            )
        else:
            turn = react.turn_messages(reply, seen, keep_thinking=keep_thinking)
        found.append([head + number * turn for number in range(_TURNS)])
    return found


def judge(prompts: Sequence[Sequence[Sequence[int]]], tail: str) -> Template:
    """`prompts`: the token ids of each conversation's prompts; `tail`: the text at the end of one."""
    lost = [len(a) - common_prefix(a, b) for grown in prompts for a, b in pairwise(grown)]
    return Template(
        append_only=not any(lost),
        lost_tokens=sum(lost) / len(lost),
        opens_reasoning=tail.rstrip().endswith("<think>"),
    )


async def examine(
    transport: Transport,
    base_url: str,
    model: str,
    conversations: Sequence[Sequence[Sequence[Message]]],
    more: Mapping[str, Any],
) -> Template | None:
    """None where the server has no `/tokenize` as vLLM has it. `more`: what else a request gives the template."""
    root = base_url.removesuffix("/v1")
    try:
        prompts = [
            [
                _ids(
                    await _post(transport, f"{root}/tokenize", {"model": model, "messages": messages, **more})
                )
                for messages in grown
            ]
            for grown in conversations
        ]
        tail = {"model": model, "tokens": prompts[0][0][-_TAIL:]}
        text = (await _post(transport, f"{root}/detokenize", tail)).get("prompt")
    except (TryFailedError, UserError, ValueError, RecursionError):
        return None
    return judge(prompts, text if isinstance(text, str) else "")


async def _post(transport: Transport, url: str, body: Mapping[str, Any]) -> dict[str, Any]:
    status, _, raw = await transport.send("POST", url, json.dumps(body).encode(), timeout=30.0)
    answer = json.loads(raw) if status == 200 else None
    if not isinstance(answer, dict):
        raise ValueError("no answer of this kind")
    return answer


def _ids(answer: Mapping[str, Any]) -> list[int]:
    ids = answer.get("tokens")
    if not isinstance(ids, list) or not ids or not all(isinstance(token, int) for token in ids):
        raise ValueError("no token ids")
    return ids
