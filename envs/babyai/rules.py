"""When a task has progressed and when it is solved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from evalharness.envs.babyai.actions import Moves
from evalharness.envs.babyai.labels import LabelProgress
from evalharness.envs.babyai.mission import Milestone, MissionProgress
from evalharness.envs.babyai.world import Outcome, World


class StepResult(NamedTuple):
    completed: tuple[int, ...]
    """Positions of the subgoals completed by this step."""
    done: bool
    """The episode is over."""
    success: bool


class PublishedRules:
    """AgentBoard's rules, with their known defects (see docs/environments/babyai.md)."""

    def __init__(self, alternatives: list[tuple[str, ...]]) -> None:
        self.labels = LabelProgress(alternatives)

    @property
    def progress(self) -> float:
        return self.labels.rate

    @property
    def remaining(self) -> tuple[int, ...]:
        """The open subgoals by position; hashable."""
        return self.labels.remaining

    def restore(self, remaining: Iterable[int]) -> None:
        """Go back to a value of `remaining`."""
        self.labels.restore(remaining)

    def perform(self, world: World, moves: Moves) -> Outcome:
        """Moves go on after the mission's end."""
        return world.perform(moves)

    def announces_completion(self, outcome: Outcome) -> bool:
        """Any end at the last move counts as completion in the text, even a failure; so does full progress."""
        return outcome.ended or self.labels.rate == 1

    def judge(self, outcome: Outcome, observation: str) -> StepResult:
        completed = self.labels.observe(observation)
        rate = self.labels.rate
        done = (outcome.ended and rate > 0.5) or rate == 1
        return StepResult(completed, done, done)


class MissionRules:
    """The mission as the simulator verifies it: milestones for progress, its accomplishment for success."""

    def __init__(self, world: World, wanted: list[Milestone]) -> None:
        self.milestones = MissionProgress(world, wanted)

    @property
    def progress(self) -> float:
        return self.milestones.rate

    @property
    def remaining(self) -> tuple[int, ...]:
        """The open milestones by number; hashable."""
        return self.milestones.remaining

    def restore(self, remaining: Iterable[int]) -> None:
        """Go back to a value of `remaining`."""
        self.milestones.restore(remaining)

    def perform(self, world: World, moves: Moves) -> Outcome:
        """The world stops with the mission's end."""
        return world.perform(moves, stop_at_end=True)

    def announces_completion(self, outcome: Outcome) -> bool:
        return outcome.succeeded

    def judge(self, outcome: Outcome, observation: str) -> StepResult:
        completed = self.milestones.update(accomplished=outcome.succeeded)
        return StepResult(completed, outcome.succeeded or outcome.failed, outcome.succeeded)


class AgentGymRules:
    """AgentGym's rules: minigrid's reward, and no end where that is 0.5 or less. A mission accomplished is a success
    here; there a success asks for a reward of 1, which no mission pays."""

    remaining: tuple[int, ...] = ()

    def __init__(self, world: World) -> None:
        self.world = world
        self.progress = 0.0

    def restore(self, remaining: Iterable[int]) -> None:
        """There is nothing to go back to."""

    def perform(self, world: World, moves: Moves) -> Outcome:
        """Moves go on after the mission's end."""
        return world.perform(moves)

    def announces_completion(self, outcome: Outcome) -> bool:
        """Any end at the last move counts as completion in the text, even a failure."""
        return outcome.ended

    def judge(self, outcome: Outcome, observation: str) -> StepResult:
        success = outcome.ended and outcome.succeeded  # its reward is that of the last move
        if success:
            self.progress = 1.0
        return StepResult((), success and self.world.reward > 0.5, success)


class PlannedForAgentGym(MissionRules):
    """To find a plan whose last move accomplishes the mission."""

    def perform(self, world: World, moves: Moves) -> Outcome:
        return world.perform(moves)

    def judge(self, outcome: Outcome, observation: str) -> StepResult:
        completed = self.milestones.update(accomplished=outcome.succeeded and outcome.ended)
        success = outcome.ended and outcome.succeeded
        return StepResult(completed, success or outcome.failed, success)
