"""A moment of a task that is played by a plan: what has been seen and what comes next, in canonical words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from evalharness.envs.base import Task
from evalharness.envs.surface import Action, ActionSurface


@dataclass(frozen=True)
class Step:
    """One action of the plan and the environment's answer."""

    action: str
    observation: str
    progress: float
    valid: bool
    completed: tuple[int, ...] = ()
    rule: str = ""
    """The rule of the player that decided; empty if a plan decided."""
    thought: str = ""
    """The player's own thought; empty if the teacher writes it."""


@dataclass(frozen=True)
class Scene:
    """The facts from which a thought is written. `steps` are the whole plan, played without errors."""

    task: Task
    goal: str
    first_observation: str
    rules: str
    """System text and instruction. Names in it are known from the start."""
    steps: tuple[Step, ...]
    at: int
    """Index of the plan's next step."""
    surface: ActionSurface

    @property
    def action(self) -> str:
        return self.steps[self.at].action

    @cached_property
    def next(self) -> Action | None:
        """The next action, parsed; None if it fits no template."""
        return self.parse(self.action)

    @property
    def last(self) -> str:
        """The last observation of the plan, without errors."""
        return self.steps[self.at - 1].observation if self.at else self.first_observation

    @property
    def left(self) -> tuple[str, ...]:
        """The plan's remaining actions, the next first."""
        return tuple(step.action for step in self.steps[self.at :])

    @property
    def done(self) -> tuple[Step, ...]:
        return self.steps[: self.at]

    @cached_property
    def seen(self) -> str:
        """All text read or written so far in lower case, without the worked example."""
        parts = [self.rules, self.goal, self.first_observation]
        for step in self.done:
            parts += [step.action, step.observation]
        return "\n".join(parts).lower()

    def parse(self, action: str) -> Action | None:
        return self.surface.parse(action.strip())

    def knows(self, *names: str) -> bool:
        """Return whether each name has been read so far, as a separate word."""
        return all(mentions(self.seen, name) for name in names)

    def ahead(self, moves: frozenset[str]) -> tuple[str, Action | None]:
        """Return the next action that does more than move: the purpose of a walk."""
        for text in self.left:
            parsed = self.parse(text)
            if parsed is None or parsed.name not in moves:
                return text, parsed
        return self.left[-1], self.parse(self.left[-1])

    @property
    def due(self) -> str | None:
        """The subgoal that the plan completes next; None if all are completed."""
        for step in self.steps[self.at :]:
            if step.completed:
                return self.task.subgoals[step.completed[0]]
        return None


def mentions(text: str, name: str) -> bool:
    """Return whether `name` stands in `text` as separate words, in any case.

    It uses no regular expression: with one for each name, thousands would be compiled each second.
    """
    text, name = text.lower(), name.lower()
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (at and _in_word(text[at - 1])) and not (end < len(text) and _in_word(text[end])):
            return True
        at = text.find(name, at + 1)
    return False


def _in_word(letter: str) -> bool:
    return letter.isalnum() or letter in "_-"
