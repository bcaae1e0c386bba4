"""Define the rules for progress and success."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from evalharness.envs.babyai.actions import Moves
from evalharness.envs.babyai.mission import MissionProgress, SubgoalProgress
from evalharness.envs.babyai.world import MovesResult, World


class StepResult(NamedTuple):
    completed: tuple[int, ...]
    """Indices of the subgoals that this step completed."""
    done: bool
    success: bool


_WILDCARD = re.compile(r"\*+")


@cache
def _pieces(pattern: str) -> tuple[str, ...]:
    return tuple(_WILDCARD.split(pattern.strip(".")))


def matches(pattern: str, sentences: Sequence[str]) -> bool:
    """Return whether one sentence of an observation has all parts between the pattern's wildcards, in any order."""
    pieces = _pieces(pattern)
    return any(all(piece in sentence for piece in pieces) for sentence in sentences)


class LabelProgress(SubgoalProgress):
    """Progress by AgentBoard's labels: sentences with wildcards. At most one label counts per step.

    `alternatives`: label lists of equal length. Label i counts if the i-th pattern of one of the lists matches.
    """

    def __init__(self, alternatives: Sequence[Sequence[str]]) -> None:
        self.alternatives = [tuple(patterns) for patterns in alternatives]
        super().__init__(len(self.alternatives[0]))

    def observe(self, observation: str) -> tuple[int, ...]:
        """Return the index of the label that this observation completes, if there is one."""
        sentences = observation.split(".")
        for patterns in self.alternatives:
            for position in self._open:
                if matches(patterns[position], sentences):
                    self._open.remove(position)
                    return (position,)
        return ()


class PublishedRules(LabelProgress):
    """AgentBoard's rules, with their known defects (see docs/environments/babyai.md)."""

    def perform(self, world: World, moves: Moves) -> MovesResult:
        """Continue the moves after the mission's end."""
        return world.perform(moves)

    def announces_completion(self, outcome: MovesResult) -> bool:
        """Return whether the text announces completion: at full progress, or after an end even by failure."""
        return outcome.ended or self.rate == 1

    def result_of(self, outcome: MovesResult, observation: str) -> StepResult:
        completed = self.observe(observation)
        done = (outcome.ended and self.rate > 0.5) or self.rate == 1
        return StepResult(completed, done, done)


class MissionRules(MissionProgress):
    """The rules of the simulator's own verdict: milestones for progress, completion of the mission for success."""

    def perform(self, world: World, moves: Moves) -> MovesResult:
        """Stop at the mission's end."""
        return world.perform(moves, stop_at_end=True)

    def announces_completion(self, outcome: MovesResult) -> bool:
        return outcome.succeeded

    def result_of(self, outcome: MovesResult, observation: str) -> StepResult:
        completed = self.update(accomplished=outcome.succeeded)
        return StepResult(completed, outcome.succeeded or outcome.failed, outcome.succeeded)


class AgentGymRules:
    """AgentGym's rules: progress is minigrid's reward, and the episode does not end if the reward is 0.5 or less. Here
    a completed mission is a success; AgentGym requires a reward of 1, which no mission gives."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rate = 0.0

    def perform(self, world: World, moves: Moves) -> MovesResult:
        """Continue the moves after the mission's end."""
        return world.perform(moves)

    def announces_completion(self, outcome: MovesResult) -> bool:
        """Return whether the text announces completion: if the last move ended the mission, even by failure."""
        return outcome.ended

    def result_of(self, outcome: MovesResult, observation: str) -> StepResult:
        success = outcome.ended and outcome.succeeded  # AgentGym uses the last move's reward
        if success:
            self.rate = 1.0
        return StepResult((), success and self.world.reward > 0.5, success)


class PlannedForAgentGym(MissionRules):
    """Rules for finding a plan whose last move completes the mission."""

    def perform(self, world: World, moves: Moves) -> MovesResult:
        return world.perform(moves)

    def result_of(self, outcome: MovesResult, observation: str) -> StepResult:
        success = outcome.ended and outcome.succeeded
        completed = self.update(accomplished=success)
        return StepResult(completed, success or outcome.failed, success)
