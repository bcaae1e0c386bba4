"""`act`: an action and no thought."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from evalharness.agents.base import Said
from evalharness.agents.react import ReactAgent
from evalharness.protocol import react
from evalharness.protocol.prompt import PromptFile
from evalharness.protocol.react import FormatError, ParsedReply

FORMAT_RULES = (
    "IMPORTANT: Reply with exactly one line:\nAction: one action\nGive one action per turn and nothing else. Write "
    "names and numbers exactly as the latest observation gives them."
)


class ActAgent(ReactAgent):
    """The chat of `react` without thoughts. A first line without the label `Action:` is taken for the action, too."""

    name: ClassVar[str] = "act"

    def shown(self, prompt: PromptFile) -> PromptFile:
        return prompt.for_format(FORMAT_RULES, "Action: {action}")

    def parse(self, said: Said) -> ParsedReply:
        parsed = super().parse(said)
        if parsed.action is not None or parsed.errors[-1:] != (FormatError.NO_ACTION,):
            return parsed
        line = next(filter(None, map(str.strip, parsed.kept.splitlines())), "")
        return (
            replace(parsed, thought="", action=line, kept=line, errors=parsed.errors[:-1]) if line else parsed
        )

    def correction(self, parsed: ParsedReply) -> str:
        return (
            react.correction(parsed).partition(" Reply with")[0] + " Reply with one line: Action: one action."
        )
