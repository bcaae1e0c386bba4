"""Rebuild the prompts of a run's conversations from the prompt files. A run stores only the hashes of the files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evalharness.agents.guard import AgentFaultError
from evalharness.records.episode import Episode
from evalharness.records.rebuilt import NotRebuiltError, rebuild
from evalharness.results.exports.conversation import USUAL, Protocol

GOAL, OBSERVATION = "\ue000", "\ue001"
"""Placeholders in a prompt for the episode's goal and first observation, which differ between episodes."""


@dataclass
class Prompts:
    """The different prompts (messages before the first reply) of the runs on a page, with placeholders."""

    folder: Path | None = None
    """Folder with the user's own prompt files, as for `run --prompts`."""
    listed: list[list[dict[str, str]]] = field(default_factory=list)
    _known: dict[tuple[Any, ...], int | None] = field(default_factory=dict)

    def of(self, episode: Episode, protocol: Protocol = USUAL) -> int | None:
        """Return the position of the episode's prompt in `listed`. Return None if no prompt file has the recorded hash,
        or if the agent's later requests do not repeat the prompt."""
        which = (episode.family, episode.kind, episode.perturbation, episode.prompt_hash, episode.words)
        key = (*which, protocol.limits.get(episode.family), protocol.agent, protocol.adaptation)
        if key not in self._known:
            messages = self._cut_fixed_part(episode, protocol)
            if messages is not None and messages not in self.listed:
                self.listed.append(messages)
            self._known[key] = None if messages is None else self.listed.index(messages)
        return self._known[key]

    def sent(self, episode: Episode, protocol: Protocol) -> list[list[dict[str, Any]]]:
        """Return the messages that the agent sent in each turn. Return [] if the agent always sends the conversation so
        far (so the page can show it without them), or if the messages cannot be rebuilt."""
        if protocol.agent is None or protocol.agent.kind.appends:
            return []
        start, whole = protocol.start(episode, self.folder)
        if not whole:
            return []
        try:
            return [each.requests[-1].messages for each in rebuild(protocol.make_agent(), start, episode)]
        except (NotRebuiltError, AgentFaultError):
            return []

    def _cut_fixed_part(self, episode: Episode, protocol: Protocol) -> list[dict[str, str]] | None:
        if protocol.agent is None or not protocol.agent.kind.appends:
            return None
        start, whole = protocol.start(episode, self.folder)
        if not whole:
            return None
        agent = protocol.make_agent()
        agent.start(replace(start, task_id="", goal=GOAL, observation=OBSERVATION, valid_actions=None))
        return agent.request().messages
