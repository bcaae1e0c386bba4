"""`summary`: the chat of `react`, with older turns folded into a summary that the model writes."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from evalharness.agents.base import AgentOptions, EpisodeStart, Request, Said
from evalharness.agents.react import ReactAgent, with_text
from evalharness.protocol.react import ParsedReply, answer_in

ASK = (
    "Before you go on: sum up the turns so far in at most five sentences, as notes to yourself. Say where you are, "
    "what you have and have found, what you tried without success, and what is left to do. Give no action now."
)


class SummaryOptions(AgentOptions):
    every: int = Field(default=10, ge=1, le=1000)
    """so many turns are folded into the summary at once"""
    keep: int = Field(default=2, ge=1, le=1000)
    """the newest turns, which stay as they are"""


class SummaryAgent(ReactAgent):
    """When `every` + `keep` turns stand in the chat, the model is asked for notes (a further call, counted as such).
    They take the place of all but the last `keep` turns, at the end of the first message."""

    name: ClassVar[str] = "summary"
    Options: ClassVar[type[AgentOptions]] = SummaryOptions
    options: SummaryOptions

    def start(self, episode: EpisodeStart) -> None:
        super().start(episode)
        self._first = self.messages[self.head - 1]
        self._folding = False

    def request(self) -> Request:
        self._folding = len(self.messages) - self.head >= 2 * (self.options.every + self.options.keep)
        if not self._folding:
            return super().request()
        *before, last = self.messages
        return Request([*before, with_text(last, ASK)], purpose="summarise")

    def read(self, said: Said) -> ParsedReply | None:
        if not self._folding:
            return super().read(said)
        notes = answer_in(said.text) or "(no notes)"
        first = with_text(self._first, f"Your notes on the turns since:\n{notes}")
        self.messages = [*self.messages[: self.head - 1], first, *self.messages[-2 * self.options.keep :]]
        self._folding = False
        return None
