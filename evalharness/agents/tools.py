"""`tools`: the model acts by calls of its one tool, `act(command)`."""

from __future__ import annotations

from typing import ClassVar

from evalharness.agents.base import Request, Said
from evalharness.agents.conversation import Conversation
from evalharness.protocol import tools
from evalharness.protocol.prompt import Message, PromptFile
from evalharness.protocol.react import ParsedReply


class ToolsAgent(Conversation):
    name: ClassVar[str] = "tools"
    calls_tools: ClassVar[bool] = True

    def shown(self, prompt: PromptFile) -> PromptFile:
        return prompt.for_tools(tools.FORMAT_RULES)

    def request(self) -> Request:
        return Request(self.messages, tools=True)

    def parse(self, said: Said) -> ParsedReply:
        return tools.parse_calls(said.text, said.calls, reasoning=said.reasoning, truncated=said.truncated)

    def correction(self, parsed: ParsedReply) -> str:
        return tools.correction(parsed)

    def turn_messages(self, parsed: ParsedReply, said: Said, observation: str) -> list[Message]:
        return tools.turn_messages(parsed, said.calls, observation, keep_thinking=self.episode.keep_thinking)
