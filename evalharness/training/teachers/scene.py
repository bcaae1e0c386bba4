"""A moment of a task that is played by its plan: what has been seen, what is to be done. Pure, in canonical words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from evalharness.envs.base import Task
from evalharness.envs.surface import Action, ActionSurface


@dataclass(frozen=True)
class Step:
    """One action of the plan and what the world answered."""

    action: str
    observation: str
    progress: float
    valid: bool
    completed: tuple[int, ...] = ()
    rule: str = ""
    """Which rule of its player decided; empty for a plan's."""
    thought: str = ""
    """The player's own; empty where the teacher words it."""


@dataclass(frozen=True)
class Scene:
    """What a thought may be made of. `steps` are the whole plan as it was played without errors."""

    task: Task
    goal: str
    first_observation: str
    rules: str
    """System text and instruction: names that stand there are known from the start."""
    steps: tuple[Step, ...]
    at: int
    """The step of the plan that comes next."""
    surface: ActionSurface

    @property
    def action(self) -> str:
        return self.steps[self.at].action

    @cached_property
    def next(self) -> Action | None:
        """The coming action in parts; None where it has no template."""
        return self.parse(self.action)

    @property
    def last(self) -> str:
        """What the world said last, errors left aside."""
        return self.steps[self.at - 1].observation if self.at else self.first_observation

    @property
    def left(self) -> tuple[str, ...]:
        """The plan from here on, the coming action first."""
        return tuple(step.action for step in self.steps[self.at :])

    @property
    def done(self) -> tuple[Step, ...]:
        return self.steps[: self.at]

    @cached_property
    def seen(self) -> str:
        """All that has been read or said so far, in lower case, the worked example left aside."""
        parts = [self.rules, self.goal, self.first_observation]
        for step in self.done:
            parts += [step.action, step.observation]
        return "\n".join(parts).lower()

    def parse(self, action: str) -> Action | None:
        return self.surface.parse(action.strip())

    def knows(self, *names: str) -> bool:
        """Whether each name has been read so far, as a word of its own."""
        return all(mentions(self.seen, name) for name in names)

    def ahead(self, moves: frozenset[str]) -> tuple[str, Action | None]:
        """The next action that does more than move: what a walk is for."""
        for text in self.left:
            parsed = self.parse(text)
            if parsed is None or parsed.name not in moves:
                return text, parsed
        return self.left[-1], self.parse(self.left[-1])

    @property
    def due(self) -> str | None:
        """The subgoal that the plan completes next; None where none is left."""
        for step in self.steps[self.at :]:
            if step.completed:
                return self.task.subgoals[step.completed[0]]
        return None


def mentions(text: str, name: str) -> bool:
    """Whether `name` stands in `text` as words of its own; case does not matter.

    Without a regular expression: one a name would be compiled thousands of times a second.
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
