"""The fixed part of the conversations of a run, worded anew from the prompt files: a run keeps their hashes only."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalharness.agents.base import EpisodeStart
from evalharness.agents.registry import ChosenAgent
from evalharness.envs.base import MAX_TURNS
from evalharness.protocol.played_prompt import played_prompt
from evalharness.protocol.prompt import AS_WRITTEN, Adaptation
from evalharness.records.episode import Episode

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
        key = (
            episode.family,
            episode.kind,
            episode.perturbation,
            episode.prompt_hash,
            max_turns,
            agent,
            adaptation,
        )
        if key not in self._known:
            messages = self._worded(*key)
            if messages is not None and messages not in self.listed:
                self.listed.append(messages)
            self._known[key] = None if messages is None else self.listed.index(messages)
        return self._known[key]

    def _worded(
        self,
        family: str,
        kind: str,
        perturbation: str | None,
        prompt_hash: str,
        max_turns: int,
        agent: ChosenAgent | None,
        adaptation: Adaptation,
    ) -> list[dict[str, str]] | None:
        found = played_prompt(family, kind, perturbation, prompt_hash, self.folder, adaptation)
        if found is None:
            return None
        prompt, surface = found
        if agent is None or not agent.kind.appends:
            return None
        playing = agent.make()
        playing.start(EpisodeStart("", family, kind, GOAL, OBSERVATION, max_turns, prompt, surface.perturbed))
        return playing.request().messages
