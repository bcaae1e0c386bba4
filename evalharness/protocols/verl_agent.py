"""`verl-agent`: the agent with which verl-agent (GiGPO) validates models on ALFWorld.

Source: agent_system/environments at commit 8ca3a46: env_manager.py (messages), memory.py (history), projection.py
(reading a reply). `python -m tests.conform --protocol` compares prompts and actions with the original's.
"""

from __future__ import annotations

import re
from typing import ClassVar

from pydantic import Field

from evalharness.agents.base import Agent, AgentOptions, EpisodeStart, ModelReply, Request
from evalharness.protocol.prompt import fill_template
from evalharness.protocol.react import FormatError, ParsedReply

_CHINESE = re.compile("[\u4e00-\u9fff]")
_THOUGHT = re.compile(r"<think>(.*?)</think>", re.DOTALL)
_OPEN, _CLOSE = "<action>", "</action>"
_WITHOUT_TAGS = 30
"""Number of characters at the end of a reply that become the action if the reply has no action tags."""
_RULES = (
    "First think, inside <think> and </think>. Then choose one of the possible actions and write it inside <action> "
    "and </action>."
)
FIRST = (
    "{instruction}\n\nYou see: {current_observation}\nPossible actions: [{admissible_actions}].\n\n" + _RULES
)
LATER = (
    "{instruction}\n\nTask: {task_description}\nSteps taken: {step_count}. The last {history_length} observations and "
    "actions: {action_history}\nStep {current_step}. You see: {current_observation}\nPossible actions: "
    "[{admissible_actions}].\n\n" + _RULES
)


class VerlAgentOptions(AgentOptions):
    history: int = Field(default=2, ge=0, le=1000)
    """number of earlier observations in the prompt, the last ones, each with its action"""


class VerlAgent(Agent):
    """Sends one user message at each step, with the last observations and actions, the present observation, and all
    admissible actions. If a reply breaks the protocol's rules (no tags, for example), its action is played
    nevertheless, and the turn gets the format error `protocol_invalid`.
    """

    name: ClassVar[str] = "verl-agent"
    Options: ClassVar[type[AgentOptions]] = VerlAgentOptions
    options: VerlAgentOptions
    needs_valid_actions: ClassVar[bool] = True

    def start(self, episode: EpisodeStart) -> None:
        self.episode = episode
        self._past: list[tuple[str, str]] = []
        """(observation, action that was read from the reply)"""
        self._observation, self._valid = episode.observation, episode.valid_actions or ()
        self._action = ""

    def request(self) -> Request:
        past, episode, texts = self._past, self.episode, self.episode.prompt.texts
        last_steps = past[len(past) - self.options.history :] if len(past) > self.options.history else past
        name, own = ("first", FIRST) if not past or not self.options.history else ("later", LATER)
        pairs = enumerate(last_steps, len(past) - len(last_steps) + 1)
        content = fill_template(
            own if texts is None else str(texts[name]),
            instruction=episode.prompt.instruction_text(episode.actions, episode.max_turns),
            task_description=episode.goal,
            step_count=len(past),
            history_length=len(last_steps),
            action_history="\n".join(
                f"[Observation {n}: '{seen}', Action {n}: '{did}']" for n, (seen, did) in pairs
            ),
            current_step=len(past) + 1,
            current_observation=self._observation,
            admissible_actions="\n ".join(f"'{action}'" for action in self._valid if action != "help"),
        )
        return Request([{"role": "user", "content": content}])

    def read(self, said: ModelReply) -> ParsedReply | None:
        text = f"<think>{said.reasoning}</think>{said.text}" if said.reasoning else said.text
        lower = text.lower()
        start, end = lower.find(_OPEN), lower.find(_CLOSE)
        tagged = start >= 0 and end >= 0
        # Tags in the wrong order give an empty action, which counts as valid.
        self._action = lower[start + len(_OPEN) : end].strip() if tagged else lower[-_WITHOUT_TAGS:]
        valid = tagged and "<think>" in text and "</think>" in text and not _CHINESE.search(text)
        thought = "\n".join(part.strip() for part in _THOUGHT.findall(said.text))
        errors = () if valid else (FormatError.PROTOCOL_INVALID,)
        return ParsedReply(thought, self._action, said.text.strip(), errors, said.reasoning)

    def observe(self, observation: str, valid_actions: tuple[str, ...] | None = None) -> None:
        self._past.append((self._observation, self._action))
        self._observation, self._valid = observation, valid_actions or ()

    def correction(self, parsed: ParsedReply) -> str:
        return ""  # every reply has an action
