"""When a task has progressed and when it is solved."""

from __future__ import annotations

from typing import NamedTuple

from envs.babyai.labels import LabelProgress
from envs.babyai.world import Outcome


class Verdict(NamedTuple):
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

    def announces_completion(self, outcome: Outcome) -> bool:
        """Any end at the last move counts as completion in the text, even a failure; so does full progress."""
        return outcome.ended or self.labels.rate == 1

    def judge(self, outcome: Outcome, observation: str) -> Verdict:
        completed = self.labels.observe(observation)
        rate = self.labels.rate
        done = (outcome.ended and rate > 0.5) or rate == 1
        return Verdict(completed, done, done)
