"""The agent `external`: the user's program chooses the actions (module `serve`)."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from pydantic import Field

from evalharness.agents.base import Agent, AgentOptions, EpisodeStart, ModelReply, Request
from evalharness.protocol.react import FormatError, ParsedReply


class ExternalOptions(AgentOptions):
    name: str = Field(default="unnamed", pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$")
    """the agent's name in tables: external:NAME"""
    valid_actions: bool = False
    """send the list of valid actions with every observation"""


class ExternalAgent(Agent):
    """Sends the program one JSON message at each turn, with all that the program may see. The reply is the action."""

    name: ClassVar[str] = "external"
    Options: ClassVar[type[AgentOptions]] = ExternalOptions
    options: ExternalOptions

    def wants_valid_actions(self) -> bool:
        return self.options.valid_actions

    def start(self, episode: EpisodeStart) -> None:
        self._goal, self._left = episode.goal, episode.max_turns
        prompt = episode.prompt
        instructions = prompt.instruction_text(episode.actions, episode.max_turns)
        self._show(episode.observation, episode.valid_actions, instructions)

    def request(self) -> Request:
        return Request([self._shown])

    def read(self, said: ModelReply) -> ParsedReply | None:
        lines = [line.strip() for line in said.text.splitlines() if line.strip()]
        if not lines:
            return ParsedReply(said.reasoning, None, "", (FormatError.EMPTY,))
        errors = (FormatError.SEVERAL_ACTIONS,) if len(lines) > 1 else ()
        return ParsedReply(said.reasoning, lines[0], lines[0], errors)

    def observe(self, observation: str, valid_actions: tuple[str, ...] | None = None) -> None:
        self._left -= 1
        self._show(observation, valid_actions)

    def correction(self, parsed: ParsedReply) -> str:
        return "Your action was empty."

    def _show(
        self, observation: str, valid_actions: tuple[str, ...] | None, instructions: str | None = None
    ) -> None:
        seen: dict[str, Any] = {"text": observation, "goal": self._goal, "turns_left": self._left}
        if instructions is not None:
            seen["instructions"] = instructions
        if valid_actions is not None:
            seen["valid_actions"] = list(valid_actions)
        self._shown = {"role": "user", "content": json.dumps(seen, ensure_ascii=False)}
