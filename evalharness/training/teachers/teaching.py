"""What the maker of training data needs from each family: thoughts, errors, and a player.

The entry point group `evalharness.teachers` names a family's teacher. A family without a teacher gets short thoughts,
and errors in the words of its actions.
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
    """None if the plan's next action works from anywhere, so that nothing must be undone."""
    unless: str = ""
    """A word of the observation that shows that the action was useful after all."""


@dataclass(frozen=True)
class Decision:
    """A player's next action and the reason for it."""

    action: str
    rule: str
    """The player's rule that decided, in a few words. The report of the data counts rules."""
    thought: str = ""
    """Empty if `Teaching.thought` writes it."""


class Seeker(Protocol):
    """Plays one episode without privileged information: it knows only the texts so far."""

    reads_valid: bool
    """Whether it needs the valid actions. Otherwise it gets an empty list, because listing takes seconds in some
    families."""

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """Return the next action; None if no rule applies."""

    def observe(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        """Take in an action's result: the observations before and after it, and the subgoals that it completed."""


def plain_thought(scene: Scene) -> str:
    return f"The next step to the goal is: {scene.action}."


@dataclass(frozen=True)
class Teaching:
    """A family's teacher. All texts are in the environment's own words."""

    thought: Callable[[Scene], str] = plain_thought
    """Writes the thought before the scene's next action, from what has been seen."""
    moves: frozenset[str] = frozenset()
    """Names of actions that only change the place."""
    idle: Callable[[Scene], list[str]] = lambda scene: []
    """Returns actions that are understood here and change nothing."""
    detours: Callable[[Scene, Sequence[str]], list[Detour]] = lambda scene, valid: []
    """Returns actions away from the plan; `valid` has the valid actions if `lists_valid`, else it is empty."""
    lists_valid: bool = False
    """Whether the family lists its valid actions within milliseconds."""
    refused: Callable[[bool, str], bool] = lambda valid, observation: not valid
    """(recorded validity, observation) -> whether the environment refused the action."""
    seeker: Callable[[Task], Seeker | None] = lambda task: None
    """Returns the player for a task. None: the plan is played, because it uses only what a player could know."""
    look: str = ""
    """The action after entering a place, if entering does not show the things there and one of them is needed."""
    clock: bool = False
    """Whether time passes by itself, so that a later observation may differ (a temperature) although nothing was
    changed."""
    synonyms: bool = True
    """Whether verbs outside the templates are refused; false if the environment knows more verbs than its list."""
    per_task: int = 4
    """Default number of trajectories of one task; larger if finding tasks is slow."""


def load_teaching(spec: EnvSpec) -> Teaching:
    """Return the family's own teacher, or the plain one."""
    for point in entry_points(group="evalharness.teachers", name=spec.family):
        own: Teaching = point.load()
        return own
    return Teaching()
