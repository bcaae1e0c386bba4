"""Rebuild the messages that were sent to the model in a stored episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from evalharness.agents.base import Agent, EpisodeStart
from evalharness.agents.react import ReactAgent
from evalharness.agents.registry import ChosenAgent, find_agent
from evalharness.envs.base import MAX_TURNS
from evalharness.envs.surface import ActionSurface
from evalharness.protocol.played_prompt import played_prompt
from evalharness.protocol.prompt import AS_WRITTEN, Adaptation, Message, PromptFile
from evalharness.records.episode import Episode
from evalharness.records.manifest import Manifest
from evalharness.records.rebuilt import episode_start, rebuild


@dataclass(frozen=True)
class Protocol:
    """The parts of a run's configuration that its conversations depend on."""

    limits: Mapping[str, int] = field(default_factory=dict)
    keep_thinking: bool = False
    agent: ChosenAgent | None = field(default_factory=lambda: find_agent("react"))
    """The run's agent; None if it is not installed. Then the built-in ReAct agent builds the messages."""
    adaptation: Adaptation = AS_WRITTEN

    @classmethod
    def of(cls, manifest: Manifest) -> Protocol:
        return cls(
            manifest.turn_limits,
            manifest.options.get("history_thinking") == "keep",
            manifest.config.chosen_agent,
            Adaptation.of(manifest.options),
        )

    @property
    def calls_tools(self) -> bool:
        return self.agent is not None and self.agent.kind.calls_tools

    def make_agent(self) -> Agent:
        return ReactAgent() if self.agent is None else self.agent.make()

    def start(self, episode: Episode, folder: Path | None = None) -> tuple[EpisodeStart, bool]:
        """Return the input of the agent's first turn, and whether the prompt file was found. `folder`: the user's
        prompt files."""
        which = (episode.family, episode.kind, episode.perturbation, episode.prompt_hash)
        played = played_prompt(*which, folder, self.adaptation, episode.words)
        prompt, actions = (
            (_NO_PROMPT, ActionSurface({})) if played is None else (played[0], played[1].perturbed)
        )
        limit = self.limits.get(episode.family, MAX_TURNS)
        start = episode_start(episode, prompt, actions, limit, keep_thinking=self.keep_thinking)
        return start, played is not None


USUAL = Protocol()
_NO_PROMPT = PromptFile(environment="", system="", instruction="", format_rules="")


def opening(episode: Episode, protocol: Protocol = USUAL) -> tuple[list[Message], bool]:
    """Return the messages before the first reply, and whether these messages are complete.

    Run folders keep the hash of a prompt file, not its text. If the prompt file has changed, or the family is not
    installed, only the goal and the first observation are known.
    """
    start, whole = protocol.start(episode)
    if not whole:
        text = f"Goal: {episode.goal}\nObservation: {episode.first_observation}"
        return [{"role": "user", "content": text}], False
    agent = protocol.make_agent()
    agent.start(start)
    return list(agent.request().messages), True


def conversation(episode: Episode, protocol: Protocol = USUAL) -> list[Message]:
    """Return the first messages, then each reply with its observation, even if the full context dropped it later."""
    messages, _ = opening(episode, protocol)
    agent = protocol.make_agent()
    for rebuilt in rebuild(agent, protocol.start(episode)[0], _last_trial(episode, protocol)):
        messages += agent.turn_messages(rebuilt.parsed, rebuilt.said, rebuilt.turn.observation)
    return messages


def _last_trial(episode: Episode, protocol: Protocol) -> Episode:
    """Return the episode with only its last trial. Keep `trims` if the agent's later requests depend on them."""
    if protocol.agent is None:
        turns = tuple(replace(turn, further=()) for turn in episode.turns)
        return replace(episode, turns=turns, further=(), trims=(), earlier=())
    return replace(episode, earlier=(), trims=() if protocol.agent.is_react else episode.trims)
