"""Agents whose messages are a chat that only grows: every reply and every observation stays, until the context is
full."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from evalharness.agents.base import Agent, ContextFullError, EpisodeStart, Request, Said
from evalharness.protocol.prompt import PromptFile
from evalharness.protocol.react import ParsedReply


class Conversation(Agent):
    appends: ClassVar[bool] = True

    def start(self, episode: EpisodeStart) -> None:
        self.episode = episode
        self.messages = self.shown(episode.prompt).messages(
            episode.actions, episode.goal, episode.observation, max_turns=episode.max_turns
        )
        self.head = len(self.messages)
        """How many messages at the front are never dropped: system, instruction, example, goal, first observation."""

    def shown(self, prompt: PromptFile) -> PromptFile:
        """The prompt as this agent shows it."""
        return prompt

    def request(self) -> Request:
        return Request(self.messages)

    def read(self, said: Said) -> ParsedReply | None:
        self._said, self._parsed = said, self.parse(said)
        return self._parsed

    @abstractmethod
    def parse(self, said: Said) -> ParsedReply: ...

    def observe(self, observation: str, valid_actions: tuple[str, ...] | None = None) -> None:
        self.messages += self.turn_messages(self._parsed, self._said, observation)

    def shorten(self) -> int:
        """Half of the turns at once, oldest first: the prefix cache is lost once, not at every turn from here on. The
        newest turn stays: without its observation the model would not know what its action did."""
        turns = (len(self.messages) - self.head) // 2
        if turns < 2:
            raise ContextFullError
        dropped = min((turns + 1) // 2, turns - 1)
        del self.messages[self.head : self.head + 2 * dropped]
        return dropped
