"""The interface of a family's teacher: a rule-based agent, thoughts, and wrong actions for training data.

A package registers a family's teacher in the entry point group `evalharness.teachers`. For a family without a teacher,
thoughts are short, and errors are wrong names or verbs and actions at the wrong time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Protocol

from evalharness.envs.base import EnvSpec, Task
from evalharness.training.teachers.scene import Scene


@dataclass(frozen=True)
class Detour:
    """A valid action that leads away from the goal, and the action that undoes it."""

    action: str
    back: str | None
    """The action that undoes the detour; None if it need not be undone, because the next action works from any
    place."""
    unless: str = ""
    """If the observation contains this word, the detour was useful and therefore is no error."""


@dataclass(frozen=True)
class Decision:
    """An agent's next action and the reason for this action."""

    action: str
    rule: str
    """Short name of the agent's rule that chose the action. The data set stores the rule of each turn."""
    thought: str = ""
    """The thought before the action; empty if `Teaching.thought` must write the thought."""


class Seeker(Protocol):
    """A rule-based agent that plays one episode without privileged information: it knows only the texts so far."""

    reads_valid: bool
    """Whether the agent needs the valid actions. If not, `valid` is empty, because listing takes seconds in some
    families."""

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """Return the next action; None if no rule applies."""

    def observe(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        """Note the result of an action: the observations before and after, and the indices of subgoals completed by
        it."""


def plain_thought(scene: Scene) -> str:
    return f"The next step to the goal is: {scene.action}."


@dataclass(frozen=True)
class Teaching:
    """A family's teacher. All texts are in the environment's original (unperturbed) wording."""

    thought: Callable[[Scene], str] = plain_thought
    """Writes the thought before the scene's next action, from what the agent has read."""
    moves: frozenset[str] = frozenset()
    """Names of the actions that only move the agent."""
    idle: Callable[[Scene], list[str]] = lambda scene: []
    """Returns actions that are valid here and change nothing, to be injected as errors."""
    detours: Callable[[Scene, Sequence[str]], list[Detour]] = lambda scene, valid: []
    """Returns detours to be injected as errors. `valid` has the valid actions if `lists_valid`; otherwise it is
    empty."""
    lists_valid: bool = False
    """Whether the environment can list its valid actions within milliseconds."""
    refused: Callable[[bool, str], bool] = lambda valid, observation: not valid
    """Returns whether the environment refused an action, from the action's recorded validity and the observation."""
    seeker: Callable[[Task], Seeker | None] = lambda task: None
    """Returns the agent for a task. None: there is no such agent, and the oracle's plan is played."""
    look: str = ""
    """The action that shows the things at a place, if entering does not show them; empty if entering does."""
    clock: bool = False
    """Whether time passes with each action, so that errors may change later observations, such as a temperature."""
    synonyms: bool = True
    """Whether every verb outside the action templates is refused; false if the environment knows more verbs."""
    per_task: int = 4
    """Default number of trajectories of one task. It is larger for families in which building tasks is slow."""


def load_teaching(spec: EnvSpec) -> Teaching:
    """Return the family's registered teacher, or a default teacher."""
    for point in entry_points(group="evalharness.teachers", name=spec.family):
        own: Teaching = point.load()
        return own
    return Teaching()
