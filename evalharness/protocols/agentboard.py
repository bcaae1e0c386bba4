"""`agentboard`: AgentBoard's agent that acts without thoughts (VanillaAgent). Its whole history is in one user message.

Source: agentboard/agents/vanilla_agent.py at commit bb7255e: `make_prompt` (messages), and
`action_parser_for_special_llms` (reading a reply), which AgentBoard applies to every model. `python -m tests.conform
--protocol` compares prompts and actions with the original's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import Field

from evalharness.agents.base import Agent, AgentOptions, ContextFullError, EpisodeStart, ModelReply, Request
from evalharness.protocol.prompt import Message
from evalharness.protocol.react import ParsedReply

_HELP = "You should use the following commands for help when your action cannot be understood: "


class AgentBoardOptions(AgentOptions):
    memory: int = Field(default=100, ge=1, le=10_000)
    """number of history entries in the prompt, the last ones; each observation and each action is one entry"""
    stop: bool = True
    """stop a reply at its first line break, as AgentBoard does for OpenAI's models but not for models in vLLM"""


class AgentBoardAgent(Agent):
    """Sends a system message and one user message, which has instruction, examples, goal, two lines of help, and the
    last entries of the history. From every reply an action is read, which may be empty."""

    name: ClassVar[str] = "agentboard"
    Options: ClassVar[type[AgentOptions]] = AgentBoardOptions
    options: AgentBoardOptions

    def start(self, episode: EpisodeStart) -> None:
        self._system, self._fixed = _build_fixed_part(episode)
        self._rewrite = _REWRITES[str((episode.prompt.texts or {}).get("noted", ""))]
        self._entries = [f"Observation: {episode.observation}"]
        self._left_out = 0
        self._action = ""

    def request(self) -> Request:
        first = max(self._left_out, len(self._entries) - self.options.memory)
        content = self._fixed + "\n".join(self._entries[first:]) + "\nAction: "
        messages: list[Message] = [
            {"role": "system", "content": self._system},
            {"role": "user", "content": content},
        ]
        return Request(messages, stop=("\n",) if self.options.stop else ())

    def read(self, said: ModelReply) -> ParsedReply | None:
        self._action = read_action(said.text)
        return ParsedReply("", self._action, said.text.strip(), (), said.reasoning)

    def observe(self, observation: str, valid_actions: tuple[str, ...] | None = None) -> None:
        self._entries += [f"Action: {self._rewrite(self._action)}", f"Observation: {observation}"]

    def correction(self, parsed: ParsedReply) -> str:
        return ""  # every reply has an action

    def shorten(self) -> int:
        """Drop the oldest history entry, because the prompt is too long. The history may then begin with an action."""
        first = max(self._left_out, len(self._entries) - self.options.memory)
        # The original loops forever if the prompt is still too long without any entries.
        if first >= len(self._entries):
            raise ContextFullError
        self._left_out = first + 1
        return 1


def read_action(reply: str) -> str:
    """Return the action as AgentBoard reads it: the text after the colon in the first line that contains `action`, or
    else the whole reply. Of this text the first line is kept, without white space, quotes and slashes around it."""
    action = reply
    if "action" in reply.lower():
        lines = reply.split("\n")
        for number, line in enumerate(lines):
            if "next action" in line and ":" in line:
                action = next((later for later in lines[number + 1 :] if later), action)
            if line.split(":")[0].lower().endswith("with action input"):
                action = line
                break
            if "action" in line.lower() and ":" in line:
                rest = line.split(":", 1)[1]
                if rest:
                    action = rest
                    break
            if "action" in line.lower() and "is to" in line:
                rest = line.split("is to")[1]
                if rest:
                    action = rest
                    break
    if not action.strip():
        action = reply.split("\n")[0]
    return action.strip().strip("'/").split("\n")[0]


def _rewrite_put(action: str) -> str:
    """Rewrite `put X in Y` to ALFWorld's `put X in/on Y`, and remove a final period."""
    action = action.strip()
    if "put" in action:
        if " in " in action:
            action = action.replace(" in ", " in/on ")
        elif " on " in action:
            action = action.replace(" on ", " in/on ")
    return action.removesuffix(".").strip()


def _cut_action(action: str) -> str:
    """Cut an action of a Jericho game at the first comma or period, and after twenty words."""
    return " ".join(action.split(",")[0].split(".")[0].split()[:20])


_REWRITES: Mapping[str, Callable[[str], str]] = {
    "": lambda action: action,
    "put": _rewrite_put,
    "cut": _cut_action,
}
"""Value of `noted` in the family's texts -> how AgentBoard rewrites an action before it is played and remembered."""


def _build_fixed_part(episode: EpisodeStart) -> tuple[str, str]:
    """Return the system message, and the user message up to the history."""
    prompt, texts = episode.prompt, episode.prompt.texts
    examples: list[str]
    if texts is None:
        system = prompt.system.strip()
        instruction = prompt.instruction_text(episode.actions, episode.max_turns)
        examples = prompt.for_format("", "Action: {action}").worked_examples()
        inventory = True
    else:
        own: Any = texts.get(episode.kind, texts)
        system, instruction = str(own["system_msg"]), str(own["instruction"])
        listed = own["examples"]
        if isinstance(listed, dict):
            listed = "".join(listed.get(episode.kind, []))  # ALFWorld's examples by kind are lists of pieces
        examples = [listed] if isinstance(listed, str) else list(listed)
        inventory = bool(texts.get("inventory", True))
    parts = [instruction]
    if examples:
        parts.append("\nHere are examples:\n" + "".join(f"{example}\n" for example in examples))
    parts.append(f"You should perform actions to accomplish the goal: {episode.goal}\n")
    parts.append(f"{_HELP}check valid actions\n")
    if inventory:
        parts.append(f"{_HELP}inventory\n")
    return system, "".join(parts)
