"""The agent `window`: one message per turn, with the last few observations and actions."""

from __future__ import annotations

import re
from typing import ClassVar

from pydantic import Field

from evalharness.agents.base import Agent, AgentOptions, ContextFullError, EpisodeStart, ModelReply, Request
from evalharness.protocol.marks import cut_template_tokens, plain_spaces, strip_marks
from evalharness.protocol.prompt import Message
from evalharness.protocol.react import FormatError, ParsedReply

_ACTION = re.compile(r"<action>(.*?)</action>", re.DOTALL)
_THOUGHT = re.compile(r"<think>(.*?)</think>", re.DOTALL)
FORMAT_RULES = (
    "First reason in one or two sentences between <think> and </think>. Then give one action between <action> and "
    "</action>, written as in the list of actions."
)


class WindowOptions(AgentOptions):
    history: int = Field(default=2, ge=0, le=1000)
    """number of earlier observations to show before the current one, each with the action that followed"""
    list_actions: bool = False
    """show the admissible actions at every turn"""


class WindowAgent(Agent):
    """Sends one user message: rules, goal, the last `history` observations with the actions that followed, and the
    current observation. The reply has its thought in <think> tags and its action in <action> tags."""

    name: ClassVar[str] = "window"
    version: ClassVar[int] = 2
    Options: ClassVar[type[AgentOptions]] = WindowOptions
    options: WindowOptions

    def wants_valid_actions(self) -> bool:
        return self.options.list_actions

    def start(self, episode: EpisodeStart) -> None:
        self.episode = episode
        self._shown = self.options.history
        self._past: list[tuple[str, str]] = []
        """(observation, the action that followed) of each turn; "(none)" if the reply had no action."""
        self._observation, self._valid = episode.observation, episode.valid_actions
        self._action = ""

    def request(self) -> Request:
        prompt, episode = self.episode.prompt, self.episode
        parts = [prompt.instruction_text(episode.actions, episode.max_turns), f"Goal: {episode.goal}"]
        past = self._past[-self._shown :] if self._shown else []
        if past:
            first = len(self._past) - len(past) + 1
            lines = [
                f"Observation {number}: {observation}\nAction {number}: {action}"
                for number, (observation, action) in enumerate(past, first)
            ]
            parts.append(f"You have taken {len(self._past)} actions. The last of them:\n" + "\n".join(lines))
        parts.append(f"Observation {len(self._past) + 1}, now: {self._observation}")
        if self._valid is not None:
            parts.append("Admissible actions now:\n" + "\n".join(self._valid))
        parts.append(FORMAT_RULES)
        messages: list[Message] = [{"role": "user", "content": "\n\n".join(parts)}]
        if prompt.system.strip():
            messages.insert(0, {"role": "system", "content": prompt.system.strip()})
        return Request(messages, stop=("</action>",) if not self.episode.keep_thinking else ())

    def read(self, reply: ModelReply) -> ParsedReply | None:
        text, _ = cut_template_tokens(plain_spaces(reply.text))
        if reply.stopped_by == "</action>" or (
            text.count("<action>") > text.count("</action>") and not reply.truncated
        ):
            text += "</action>"
        actions = _ACTION.findall(text)
        thoughts = "\n".join(part.strip() for part in _THOUGHT.findall(text))
        action = strip_marks(" ".join(actions[0].split())) if actions else ""
        errors: tuple[FormatError, ...] = ()
        if not action:
            errors = (_kind_of(reply),)
        elif len(actions) > 1:
            errors = (FormatError.SEVERAL_ACTIONS,)
        self._action = action or "(none)"
        return ParsedReply(thoughts, action or None, text.strip(), errors, reply.reasoning)

    def observe(self, observation: str, valid_actions: tuple[str, ...] | None = None) -> None:
        self._past.append((self._observation, self._action))
        self._observation, self._valid = observation, valid_actions

    def correction(self, parsed: ParsedReply) -> str:
        return "Your reply was not understood: it has no action between <action> and </action>."

    def shorten(self) -> int:
        shown = min(self._shown, len(self._past))
        if shown < 1:
            raise ContextFullError
        self._shown = shown // 2
        return shown - self._shown


def _kind_of(reply: ModelReply) -> FormatError:
    if reply.truncated:
        return FormatError.TRUNCATED
    if not reply.text.strip():
        return FormatError.EMPTY
    return FormatError.THOUGHT_ONLY if "<think>" in reply.text else FormatError.NO_ACTION
