"""What a chat template does with a growing conversation, found out by asking the server for token ids.

A server's prefix cache, and training on recorded turns, depend on a template that only appends: the prompt of a turn
begins with the whole prompt of the turn before. Some templates drop reasoning from earlier turns, or end a prompt with
an empty reasoning block that later prompts do not have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from evalharness.agents.base import Agent, EpisodeStart, Said
from evalharness.agents.react import ReactAgent
from evalharness.base.errors import UserError
from evalharness.config.values import route
from evalharness.envs.surface import ActionSurface
from evalharness.models.completion import TryFailedError
from evalharness.protocol import tools
from evalharness.protocol.prompt import Message, PromptFile
from evalharness.protocol.reasoning import opens_reasoning
from evalharness.protocol.tools import ToolCall
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

    def notice(self) -> str | None:
        """One line for a person; None where there is nothing to say."""
        if self.append_only:
            return None
        return (
            "the chat template is not append-only: a prompt does not go on with the last tokens of the one before "
            f"({self.lost_tokens:.3g} on average), so the prefix cache holds less; see docs/server.md"
        )


_START = EpisodeStart(
    task_id="template",
    family="",
    kind="",
    goal="put a mug on the desk.",
    observation="You are in a room.",
    max_turns=_TURNS,
    prompt=PromptFile(
        environment="", system="You are a household robot.", instruction="Find it.", format_rules=""
    ),
    actions=ActionSurface({}),
)
_REPLIES = (
    ("Thought: The mug may be on shelf 1.\nAction: go to shelf 1", ""),
    ("**Thought:** Déjà vu …\n\n  Action:\tlook", ""),
    ("Thought: x\nAction: take mug 1", "First the mug.\n\nThen the desk."),
)
"""(reply, reasoning)"""


def growing_conversations(
    make: Callable[[], Agent] = ReactAgent, *, keep_thinking: bool = False
) -> list[list[list[Message]]]:
    """Three conversations, each as such an agent sends it turn after turn."""
    call = ToolCall("call", tools.NAME, json.dumps({tools.ARGUMENT: "look"}))
    found = []
    for text, reasoning in _REPLIES:
        agent = make()
        agent.start(replace(_START, keep_thinking=keep_thinking))
        grown = [list(agent.request().messages)]
        for _ in range(_TURNS - 1):
            agent.read(Said(text, reasoning, (call,)))
            agent.observe("On the shelf 1, you see a mug 1.\n\nNothing else.  ")
            grown.append(list(agent.request().messages))
        found.append(grown)
    return found


def template_of(prompts: Sequence[Sequence[Sequence[int]]], tail: str) -> Template:
    """`prompts`: the token ids of each conversation's prompts; `tail`: the text at the end of one."""
    lost = [len(a) - common_prefix(a, b) for grown in prompts for a, b in pairwise(grown)]
    return Template(
        append_only=not any(lost),
        lost_tokens=sum(lost) / len(lost),
        opens_reasoning=opens_reasoning(tail),
    )


async def examine(
    transport: Transport,
    base_url: str,
    model: str,
    conversations: Sequence[Sequence[Sequence[Message]]],
    more: Mapping[str, Any],
) -> Template | None:
    """None where the server has no `/tokenize` as vLLM has it. `more`: what else a request gives the template."""
    tokenize, detokenize = (route(base_url, path, outside=True) for path in ("/tokenize", "/detokenize"))
    try:
        prompts = [
            [
                _ids(await _post(transport, tokenize, {"model": model, "messages": messages, **more}))
                for messages in grown
            ]
            for grown in conversations
        ]
        tail = {"model": model, "tokens": prompts[0][0][-_TAIL:]}
        text = (await _post(transport, detokenize, tail)).get("prompt")
    except (TryFailedError, UserError, ValueError, RecursionError):
        return None
    return template_of(prompts, text if isinstance(text, str) else "")


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
