"""An episode without a prompt, for trainers that word, remember and read by themselves."""

from __future__ import annotations

from typing import ClassVar

from evalharness.agents.base import Agent, EpisodeStart, Request, Said
from evalharness.protocol.prompt import Message
from evalharness.protocol.react import ParsedReply


class Bare(Agent):
    """Nothing but observations; a reply is the action, whatever it says."""

    name: ClassVar[str] = "bare"
    needs_valid_actions: ClassVar[bool] = True
    admissible: tuple[str, ...] = ()
    """None at the end of an episode."""

    def start(self, episode: EpisodeStart) -> None:
        self._messages: list[Message] = []
        self._hear(episode.observation, episode.valid_actions)

    def request(self) -> Request:
        return Request(self._messages)

    def read(self, said: Said) -> ParsedReply:
        self._messages.append({"role": "assistant", "content": said.text})
        return ParsedReply("", said.text, said.text, ())

    def observe(self, observation: str, valid_actions: tuple[str, ...] | None = None) -> None:
        self._hear(observation, valid_actions)

    def correction(self, parsed: ParsedReply) -> str:
        return ""  # every reply is an action

    def _hear(self, observation: str, valid_actions: tuple[str, ...] | None) -> None:
        self._messages.append({"role": "user", "content": observation})
        self.admissible = valid_actions or ()
