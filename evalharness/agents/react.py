"""`react`, the default: a thought and an action as two lines of a chat (Yao et al., 2023, arXiv:2210.03629)."""

from __future__ import annotations

from typing import ClassVar

from evalharness.agents.base import Request, Said
from evalharness.agents.conversation import Conversation
from evalharness.protocol import react
from evalharness.protocol.prompt import Message
from evalharness.protocol.react import ParsedReply


class ReactAgent(Conversation):
    name: ClassVar[str] = "react"

    def request(self) -> Request:
        return Request(self.messages, stop=react.STOP_SEQUENCES)

    def parse(self, said: Said) -> ParsedReply:
        return react.parse(
            said.text, reasoning=said.reasoning, stopped_by=said.stopped_by, truncated=said.truncated
        )

    def correction(self, parsed: ParsedReply) -> str:
        return react.correction(parsed)

    def turn_messages(self, parsed: ParsedReply, said: Said, observation: str) -> list[Message]:
        return react.turn_messages(parsed, observation, keep_thinking=self.episode.keep_thinking)
