"""What making training data needs to know of each family: words for thoughts, ways to err, a player.

A family's teacher is named by an entry point of the group `evalharness.teachers`. A family without one gets short
thoughts and errors in the action's words.
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
    """A valid action that leads away from the goal, and what takes it back."""

    action: str
    back: str | None
    """None where the plan's next action starts from anywhere, so that nothing has to be taken back."""
    unless: str = ""
    """It was no way off when the world's answer holds this word."""


@dataclass(frozen=True)
class Decision:
    """What a player does next, and why."""

    action: str
    rule: str
    """Which of the player's rules decided, in a few words: the report of the data counts them."""
    thought: str = ""
    """Empty where `Teaching.thought` words it."""


class Seeker(Protocol):
    """Plays one episode without privileged information: it knows only the texts so far."""

    reads_valid: bool
    """It is given the valid actions; else an empty list, as they take seconds in some families."""

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """What it does next; None when it is at a loss."""

    def saw(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        """What came of it: the observations before and after, and the subgoals reached."""


def plain_thought(scene: Scene) -> str:
    return f"The next step to the goal is: {scene.action}."


@dataclass(frozen=True)
class Teaching:
    """A family, as the maker of trajectories sees it. All texts are in the environment's own words."""

    thought: Callable[[Scene], str] = plain_thought
    """The thought that leads to the scene's next action, made of what has been seen."""
    moves: frozenset[str] = frozenset()
    """Names of actions that only lead somewhere."""
    idle: Callable[[Scene], list[str]] = lambda scene: []
    """Actions that are understood here and change nothing."""
    detours: Callable[[Scene, Sequence[str]], list[Detour]] = lambda scene, valid: []
    """Ways off the plan; `valid` are the valid actions where `lists_valid`, else empty."""
    lists_valid: bool = False
    """The family lists its valid actions in milliseconds."""
    refused: Callable[[bool, str], bool] = lambda valid, observation: not valid
    """(recorded validity, observation) -> whether the world refused the action."""
    seeker: Callable[[Task], Seeker | None] = lambda task: None
    """Plays in place of the plan, which knows what nobody has read. None: the plan goes only where a player could know
    to go."""
    look: str = ""
    """Said on coming to a place whose things are not shown by coming there, when one of them is needed."""
    clock: bool = False
    """Time passes by itself, so that a later observation may differ (a temperature) although nothing was changed."""
    synonyms: bool = True
    """A verb that is in no template is refused; false where the world knows more verbs than its list."""
    per_task: int = 4
    """Trajectories of one task by default: more where finding tasks is slow."""


def teaching_of(spec: EnvSpec) -> Teaching:
    """The family's own, or the plain one."""
    for point in entry_points(group="evalharness.teachers", name=spec.family):
        own: Teaching = point.load()
        return own
    return Teaching()
