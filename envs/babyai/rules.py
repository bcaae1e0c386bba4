"""Define how each suite measures progress and success."""

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
    """Return whether one of the sentences contains all texts between the wildcards of the pattern, in any order."""
    pieces = _pieces(pattern)
    return any(all(piece in sentence for piece in pieces) for sentence in sentences)


class LabelProgress(SubgoalProgress):
    """Progress by AgentBoard's labels. A label is a sentence with wildcards; a step completes at most one label.

    `alternatives`: lists of labels, of equal length. Subgoal i is completed if the i-th label of any list matches.
    """

    def __init__(self, alternatives: Sequence[Sequence[str]]) -> None:
        self.alternatives = [tuple(patterns) for patterns in alternatives]
        super().__init__(len(self.alternatives[0]))

    def observe(self, observation: str) -> tuple[int, ...]:
        """Return the index of the subgoal that this observation completes, or ()."""
        sentences = observation.split(".")
        for patterns in self.alternatives:
            for position in self._open:
                if matches(patterns[position], sentences):
                    self._open.remove(position)
                    return (position,)
        return ()


class PublishedRules(LabelProgress):
    """AgentBoard's rules, including their known defects, which docs/environments/babyai.md lists."""

    def perform(self, world: World, moves: Moves) -> MovesResult:
        """Carry out the moves of an action; do not stop when the mission ends before the last move."""
        return world.perform(moves)

    def announces_completion(self, outcome: MovesResult) -> bool:
        """Return whether the observation says that the task is completed. AgentBoard says so even after a failure."""
        return outcome.ended or self.rate == 1

    def result_of(self, outcome: MovesResult, observation: str) -> StepResult:
        completed = self.observe(observation)
        done = (outcome.ended and self.rate > 0.5) or self.rate == 1
        return StepResult(completed, done, done)


class MissionRules(MissionProgress):
    """The open suite's rules: progress is the share of milestones, and success is a completed mission in minigrid."""

    def perform(self, world: World, moves: Moves) -> MovesResult:
        return world.perform(moves, stop_at_end=True)

    def announces_completion(self, outcome: MovesResult) -> bool:
        return outcome.succeeded

    def result_of(self, outcome: MovesResult, observation: str) -> StepResult:
        completed = self.update(accomplished=outcome.succeeded)
        return StepResult(completed, outcome.succeeded or outcome.failed, outcome.succeeded)


class AgentGymRules:
    """AgentGym's rules, with one difference: a completed mission is a success here. AgentGym requires a reward of 1,
    which no mission gives. As in AgentGym, a completed mission ends the episode only if its reward is above 0.5."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rate = 0.0

    def perform(self, world: World, moves: Moves) -> MovesResult:
        """Carry out the moves of an action; do not stop when the mission ends before the last move."""
        return world.perform(moves)

    def announces_completion(self, outcome: MovesResult) -> bool:
        """Return whether the observation says that the task is completed. AgentGym says so even after a failure."""
        return outcome.ended

    def result_of(self, outcome: MovesResult, observation: str) -> StepResult:
        success = outcome.ended and outcome.succeeded  # AgentGym reads only the result of the last move
        if success:
            self.rate = 1.0
        return StepResult((), success and self.world.reward > 0.5, success)


class AgentGymPlanRules(MissionRules):
    """Rules with which the oracle plans for AgentGym's suite: only an action's last move may complete the mission."""

    def perform(self, world: World, moves: Moves) -> MovesResult:
        return world.perform(moves)

    def result_of(self, outcome: MovesResult, observation: str) -> StepResult:
        success = outcome.ended and outcome.succeeded
        completed = self.update(accomplished=success)
        return StepResult(completed, success or outcome.failed, success)
