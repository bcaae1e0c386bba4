"""The fixed part of the conversations of a run, worded anew from the prompt files: a run keeps their hashes only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evalharness.agents.guard import AgentFaultError
from evalharness.records.episode import Episode
from evalharness.records.rebuilt import NotRebuiltError, rebuild
from evalharness.results.exports.conversation import USUAL, Protocol

GOAL, OBSERVATION = "\ue000", "\ue001"
"""Stand for the episode's own goal and first observation."""


@dataclass
class Prompts:
    """Every different fixed part that was asked for, once."""

    folder: Path | None = None
    """With prompt files of the user's own, as `run --prompts` takes it."""
    listed: list[list[dict[str, str]]] = field(default_factory=list)
    _known: dict[tuple[Any, ...], int | None] = field(default_factory=dict)

    def of(self, episode: Episode, protocol: Protocol = USUAL) -> int | None:
        """Position in `listed`; None where no prompt file of that very hash is at hand, and for an agent that does
        not begin every request of an episode alike."""
        which = (episode.family, episode.kind, episode.perturbation, episode.prompt_hash, episode.words)
        key = (*which, protocol.limits.get(episode.family), protocol.agent, protocol.adaptation)
        if key not in self._known:
            messages = self._worded(episode, protocol)
            if messages is not None and messages not in self.listed:
                self.listed.append(messages)
            self._known[key] = None if messages is None else self.listed.index(messages)
        return self._known[key]

    def sent(self, episode: Episode, protocol: Protocol) -> list[list[dict[str, Any]]]:
        """Of each turn the messages that were sent for its action, where these are not the conversation so far."""
        if protocol.agent is None or protocol.agent.kind.appends:
            return []
        start, whole = protocol.start(episode, self.folder)
        if not whole:
            return []
        try:
            return [each.requests[-1].messages for each in rebuild(protocol.make_agent(), start, episode)]
        except (NotRebuiltError, AgentFaultError):
            return []

    def _worded(self, episode: Episode, protocol: Protocol) -> list[dict[str, str]] | None:
        if protocol.agent is None or not protocol.agent.kind.appends:
            return None
        start, whole = protocol.start(episode, self.folder)
        if not whole:
            return None
        agent = protocol.make_agent()
        agent.start(replace(start, task_id="", goal=GOAL, observation=OBSERVATION, valid_actions=None))
        return agent.request().messages
