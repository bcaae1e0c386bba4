"""Parse tool calls of a model that has one tool, `act(command)` (`--agent tools`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import ConfigDict

from evalharness.protocol.marks import cut_template_tokens, plain_spaces, strip_marks
from evalharness.protocol.prompt import Message
from evalharness.protocol.react import FormatError, ParsedReply, answer_in, parse

NAME, ARGUMENT = "act", "command"
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": NAME,
        "description": "Carry out one command in the environment. Returns what you observe then.",
        "parameters": {
            "type": "object",
            "properties": {ARGUMENT: {"type": "string", "description": "one command, worded as in the list"}},
            "required": [ARGUMENT],
        },
    },
}
FORMAT_RULES = (
    "IMPORTANT: Say in one or two sentences what you know and what to do next. Then call the tool `act` once, with one "
    "command."
)

STEP = 'Thought: {thought}\nact(command="{action}")'
"""Template of a turn in a worked example."""


@dataclass(frozen=True)
class ToolCall:
    """A tool call in a model's reply."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    id: str
    name: str
    arguments: str
    """JSON as the model wrote it; it may be invalid."""

    def command(self) -> str | None:
        """Return the command of a valid call of `act`; None for another call."""
        try:
            value = json.loads(self.arguments)[ARGUMENT] if self.name == NAME else None
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        text = cut_template_tokens(plain_spaces(value))[0] if isinstance(value, str) else ""
        return strip_marks(next(iter(text.strip().splitlines()), "")) or None


def parse_calls(
    text: str, calls: Sequence[ToolCall], *, reasoning: str = "", truncated: bool = False
) -> ParsedReply:
    """Parse a reply. The first call is the action. The whole text is the thought, even if it has an `Action:` line."""
    spoken = parse(text, reasoning=reasoning)
    thought = answer_in(text)
    command = calls[0].command() if calls else None
    errors: tuple[FormatError, ...]
    if command is not None:
        errors = (FormatError.SEVERAL_ACTIONS,) if len(calls) > 1 else ()
    elif truncated:
        inside = spoken.reasoning and not thought and not calls
        errors = (FormatError.REASONING_TRUNCATED if inside else FormatError.TRUNCATED,)
    elif calls:
        errors = (FormatError.BAD_CALL,)
    elif thought or spoken.reasoning:
        errors = (FormatError.THOUGHT_ONLY,)
    else:
        errors = (FormatError.EMPTY,)
    return ParsedReply(thought, command, thought, errors, spoken.reasoning)


_REASONS = {
    FormatError.EMPTY: "it was empty",
    FormatError.THOUGHT_ONLY: "it calls no tool",
    FormatError.BAD_CALL: "it calls another tool, or without a command",
    FormatError.TRUNCATED: "it was too long and was cut off before the call was complete",
    FormatError.REASONING_TRUNCATED: "your reasoning was too long, and the reply was cut off before its answer began",
}


def correction(parsed: ParsedReply) -> str:
    """Return the text that the model gets instead of an observation if its reply has no valid call."""
    return (
        f"Your reply was not understood: {_REASONS[parsed.errors[-1]]}. "
        f'Call the tool `{NAME}` once, with {{"{ARGUMENT}": one command}}.'
    )


def turn_messages(
    parsed: ParsedReply, calls: Sequence[ToolCall], observation: str, *, keep_thinking: bool = False
) -> list[Message]:
    """Return the two messages of a turn: the call and its result, or (without a valid call) the text and a
    correction."""
    text = parsed.conversation_text(keep_thinking=keep_thinking)
    if parsed.action is None:
        return [
            {"role": "assistant", "content": text},
            {"role": "user", "content": f"Observation: {observation}"},
        ]
    call = calls[0]
    function = {"name": NAME, "arguments": json.dumps({ARGUMENT: parsed.action})}
    return [
        {
            "role": "assistant",
            "content": "" if text == "(no reply)" else text,
            "tool_calls": [{"id": call.id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call.id, "content": observation},
    ]
