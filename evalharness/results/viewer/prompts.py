"""The fixed part of the conversations of a run, worded anew from the prompt files: a run keeps their hashes only."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalharness.agents.base import EpisodeStart
from evalharness.agents.guard import AgentFaultError
from evalharness.agents.registry import ChosenAgent
from evalharness.envs.base import MAX_TURNS
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.played_prompt import played_prompt
from evalharness.protocol.prompt import AS_WRITTEN, Adaptation, PromptFile
from evalharness.records.episode import Episode
from evalharness.records.rebuilt import NotRebuiltError, episode_start, rebuild

GOAL, OBSERVATION = "\ue000", "\ue001"
"""Stand for the episode's own goal and first observation."""


@dataclass
class Prompts:
    """Every different fixed part that was asked for, once."""

    folder: Path | None = None
    """With prompt files of the user's own, as `run --prompts` takes it."""
    listed: list[list[dict[str, str]]] = field(default_factory=list)
    _known: dict[tuple[Any, ...], int | None] = field(default_factory=dict)

    def of(
        self,
        episode: Episode,
        max_turns: int = MAX_TURNS,
        agent: ChosenAgent | None = None,
        adaptation: Adaptation = AS_WRITTEN,
    ) -> int | None:
        """Position in `listed`; None where no prompt file of that very hash is at hand, and for an agent that does
        not begin every request of an episode alike."""
        how = (max_turns, agent, adaptation)
        key = (episode.family, episode.kind, episode.perturbation, episode.prompt_hash, *how)
        if key not in self._known:
            messages = self._worded(episode, *how)
            if messages is not None and messages not in self.listed:
                self.listed.append(messages)
            self._known[key] = None if messages is None else self.listed.index(messages)
        return self._known[key]

    def sent(
        self, episode: Episode, max_turns: int, agent: ChosenAgent | None, adaptation: Adaptation = AS_WRITTEN
    ) -> list[list[dict[str, Any]]]:
        """Of each turn the messages that were sent for its action, where these are not the conversation so far."""
        if agent is None or agent.kind.appends:
            return []
        if (found := self._played(episode, adaptation)) is None:
            return []
        start = episode_start(episode, found[0], found[1].perturbed, max_turns, keep_thinking=False)
        try:
            return [rebuilt.requests[-1].messages for rebuilt in rebuild(agent.make(), start, episode)]
        except (NotRebuiltError, AgentFaultError):
            return []

    def _played(self, e: Episode, adaptation: Adaptation) -> tuple[PromptFile, PlayedSurface] | None:
        return played_prompt(e.family, e.kind, e.perturbation, e.prompt_hash, self.folder, adaptation)

    def _worded(
        self, episode: Episode, max_turns: int, agent: ChosenAgent | None, adaptation: Adaptation
    ) -> list[dict[str, str]] | None:
        found = self._played(episode, adaptation)
        if found is None or agent is None or not agent.kind.appends:
            return None
        prompt, surface = found
        playing = agent.make()
        start = EpisodeStart(
            "", episode.family, episode.kind, GOAL, OBSERVATION, max_turns, prompt, surface.perturbed
        )
        playing.start(start)
        return playing.request().messages
