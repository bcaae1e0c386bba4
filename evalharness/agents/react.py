"""Agents with a growing chat: every reply and every observation stays in the chat until the context is full.

`react`, the default: a thought and an action as two lines (Yao et al., 2023, arXiv:2210.03629); `act`: an action and no
thought; `tools`: the model acts by calling the tool `act(command)`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

from evalharness.agents.base import Agent, ContextFullError, EpisodeStart, ModelReply, Request
from evalharness.protocol import react, tools
from evalharness.protocol.marks import strip_marks
from evalharness.protocol.prompt import Message, PromptFile
from evalharness.protocol.react import FormatError, ParsedReply

ACT_RULES = (
    "IMPORTANT: Reply with exactly one line:\nAction: one action\nGive one action per turn and nothing else. Write "
    "names and numbers exactly as the latest observation gives them."
)


class Conversation(Agent):
    version: ClassVar[int] = 2
    appends: ClassVar[bool] = True

    def start(self, episode: EpisodeStart) -> None:
        self.episode = episode
        self.messages = self.format_prompt(episode.prompt).messages(
            episode.actions, episode.goal, episode.observation, max_turns=episode.max_turns
        )
        self.head = len(self.messages)
        """Number of first messages that are never dropped: system, instruction, example, goal, observation."""

    def format_prompt(self, prompt: PromptFile) -> PromptFile:
        """Return the prompt in this agent's format."""
        return prompt

    def read(self, reply: ModelReply) -> ParsedReply | None:
        self._reply, self._parsed = reply, self.parse(reply)
        return self._parsed

    @abstractmethod
    def parse(self, reply: ModelReply) -> ParsedReply: ...

    def observe(self, observation: str, valid_actions: tuple[str, ...] | None = None) -> None:
        self.messages += self.turn_messages(self._parsed, self._reply, observation)

    def shorten(self) -> int:
        """Drop the older half of the turns. Each drop invalidates the server's prefix cache, so
        drop rarely. The newest turn stays, because its observation shows the result of the last action."""
        turns = (len(self.messages) - self.head) // 2
        if turns < 2:
            raise ContextFullError
        dropped = min((turns + 1) // 2, turns - 1)
        del self.messages[self.head : self.head + 2 * dropped]
        return dropped


class ReactAgent(Conversation):
    """A chat of thoughts and actions that grows until the context is full."""

    name: ClassVar[str] = "react"

    def request(self) -> Request:
        return Request(self.messages, stop=react.STOP_SEQUENCES)

    def parse(self, reply: ModelReply) -> ParsedReply:
        return react.parse(
            reply.text, reasoning=reply.reasoning, stopped_by=reply.stopped_by, truncated=reply.truncated
        )

    def correction(self, parsed: ParsedReply) -> str:
        return react.correction(parsed)

    def turn_messages(self, parsed: ParsedReply, reply: ModelReply, observation: str) -> list[Message]:
        return react.turn_messages(parsed, observation, keep_thinking=self.episode.keep_thinking)


class ActAgent(ReactAgent):
    """The chat of `react` without thoughts. A first line without the label `Action:` also counts as the action."""

    name: ClassVar[str] = "act"

    def format_prompt(self, prompt: PromptFile) -> PromptFile:
        return prompt.for_format(ACT_RULES, "Action: {action}")

    def parse(self, reply: ModelReply) -> ParsedReply:
        parsed = super().parse(reply)
        if parsed.action is not None or parsed.errors[-1:] != (FormatError.NO_ACTION,):
            return parsed
        line = strip_marks(next(filter(None, map(str.strip, parsed.kept.splitlines())), ""))
        return (
            replace(parsed, thought="", action=line, kept=line, errors=parsed.errors[:-1]) if line else parsed
        )

    def correction(self, parsed: ParsedReply) -> str:
        return (
            react.correction(parsed).partition(" Reply with")[0] + " Reply with one line: Action: one action."
        )


class ToolsAgent(Conversation):
    """The chat of `react`, but the model acts by calling the tool `act(command)`. The server must parse tool calls."""

    name: ClassVar[str] = "tools"
    calls_tools: ClassVar[bool] = True

    def format_prompt(self, prompt: PromptFile) -> PromptFile:
        return prompt.for_format(tools.FORMAT_RULES, tools.STEP)

    def request(self) -> Request:
        return Request(self.messages, tools=True)

    def parse(self, reply: ModelReply) -> ParsedReply:
        return tools.parse_calls(
            reply.text, reply.calls, reasoning=reply.reasoning, truncated=reply.truncated
        )

    def correction(self, parsed: ParsedReply) -> str:
        return tools.correction(parsed)

    def turn_messages(self, parsed: ParsedReply, reply: ModelReply, observation: str) -> list[Message]:
        return tools.turn_messages(parsed, reply.calls, observation, keep_thinking=self.episode.keep_thinking)
