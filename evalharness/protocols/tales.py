"""`tales`: the agents of TALES, `zero-shot` and `react`.

Source: tale-suite at commit fdbdf2b: agents/llm.py and agents/react.py (messages), benchmark.py (replies of several
lines). `python -m tests.conform --protocol` compares prompts and actions with the original's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from evalharness.agents.base import (
    ACT,
    Agent,
    AgentOptions,
    ContextFullError,
    EpisodeStart,
    ModelReply,
    Request,
)
from evalharness.protocol.prompt import Message, fill_template
from evalharness.protocol.react import FormatError, ParsedReply

_TASK = "Task Description:\n"
_ONE_ACTION = "The game only allows one action per step."
_OWN = {
    "system": "You play a game of text. Reach its goal, or its highest score. Answer with one short command, such as "
    "`go north`, and nothing else.",
    "truncated": "(Only the last {limit} steps are shown.)\n> ",
    "question": "// Think step by step: what should be done next?\n",
    "prompt": "// Now give the command, in one line.\n> ",
}
"""The harness's wording of the protocol's four texts, used if the original texts are not imported."""


class TalesOptions(AgentOptions):
    think: bool = False
    """the agent `react` of TALES: before each action, ask the model for a thought, which later prompts omit"""
    conversation: bool = True
    """send the turns as a chat; false: merge all turns into one user message"""
    context_limit: int | None = Field(default=None, ge=1)
    """number of steps in the prompt, the last ones; a note that steps are missing replaces the oldest observation"""
    think_tokens: int = Field(default=1024, ge=1)
    """maximum number of tokens of a thought"""


class TalesAgent(Agent):
    """Sends a system message, then a chat of observations and commands. A reply of several lines gives no action but
    counts as a step."""

    name: ClassVar[str] = "tales"
    Options: ClassVar[type[AgentOptions]] = TalesOptions
    options: TalesOptions

    def start(self, episode: EpisodeStart) -> None:
        kind = "react" if self.options.think else "zero_shot"
        texts: Any = episode.prompt.texts
        self._texts: dict[str, str] = _OWN if texts is None else texts[kind]
        self._past: list[tuple[str, str]] = []
        needs_no_goal = _needs_no_goal(episode)
        self._observation = (
            episode.observation if needs_no_goal else f"{_TASK}{episode.goal}\n\n{episode.observation}"
        )
        self._limit = self.options.context_limit
        self._thought: str | None = None
        self._action = ""

    def request(self) -> Request:
        if not self.options.think:
            return Request(self._messages([f"{self._observation}\n> "]))
        question = self._texts["question"]
        if self._thought is None:
            asked = self._messages([self._observation, question])
            return Request(asked, purpose="think", max_tokens=self.options.think_tokens)
        answered = [self._observation, question, None, self._texts["prompt"]]
        return Request(self._messages(answered, f"{self._thought}\n"), purpose=ACT)

    def _messages(self, now: Sequence[str | None], thought: str = "") -> list[Message]:
        """Return the chat. `now` has the user's texts of the present step; None is replaced by `thought`."""
        parts = [("system", self._texts["system"])]
        limit = self._limit or len(self._past) + 1
        for number, (seen, did) in enumerate(self._past[-limit:]):
            cut = len(self._past) >= limit and number == 0
            parts.append(
                ("user", fill_template(self._texts["truncated"], limit=limit) if cut else f"{seen}\n> ")
            )
            parts.append(("assistant", f"{did}\n"))
        parts += [("assistant", thought) if part is None else ("user", part) for part in now]
        messages: list[Message] = []
        for role, content in parts:
            if messages and messages[-1]["role"] == role:
                messages[-1] = {"role": role, "content": f"{messages[-1]['content']}\n\n{content}"}
            else:
                messages.append({"role": role, "content": content})
        if not self.options.conversation:
            whole = "".join(message["content"] for message in messages[1:])
            messages = [messages[0], {"role": "user", "content": whole}]
        return messages

    def read(self, said: ModelReply) -> ParsedReply | None:
        text = said.text.strip()
        if self.options.think and self._thought is None:
            self._thought = text
            return None
        thought, self._thought = self._thought or "", None
        self._action = text
        if "\n" in text:
            return ParsedReply(thought, None, text, (FormatError.SEVERAL_ACTIONS,), said.reasoning)
        return ParsedReply(thought, text, text, (), said.reasoning)

    def observe(self, observation: str, valid_actions: tuple[str, ...] | None = None) -> None:
        self._past.append((self._observation, self._action))
        self._observation = observation

    def correction(self, parsed: ParsedReply) -> str:
        return _ONE_ACTION

    def shorten(self) -> int:
        """Drop the older half of the steps in the prompt, as if `context_limit` were smaller."""
        steps = min(self._limit or len(self._past), len(self._past))
        if steps < 2:
            raise ContextFullError
        self._limit = steps // 2
        return steps - self._limit


def _needs_no_goal(episode: EpisodeStart) -> bool:
    """Return whether the prompt needs no goal: the first observation states it, or the game has only a score."""
    return not episode.goal or episode.goal in episode.observation
