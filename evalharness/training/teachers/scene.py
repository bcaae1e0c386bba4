"""The situation at one step of a planned trajectory: what the agent has read, and which steps come next."""

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
    """The rule by which the teacher's agent chose the action; empty for the oracle's plan."""
    thought: str = ""
    """The agent's thought; empty if the function `Teaching.thought` must write the thought."""


@dataclass(frozen=True)
class Scene:
    """The facts from which a thought is written. `steps` has the whole trajectory without errors, past and future. All
    texts are in the environment's original (unperturbed) wording."""

    task: Task
    goal: str
    first_observation: str
    rules: str
    """System text and instruction of the prompt. Names in this text are known from the start."""
    steps: tuple[Step, ...]
    at: int
    """Index in `steps` of the step for which the thought is written."""
    surface: ActionSurface

    @property
    def action(self) -> str:
        return self.steps[self.at].action

    @cached_property
    def next(self) -> Action | None:
        """The next action, parsed; None if the action fits no action template of the environment."""
        return self.parse(self.action)

    @property
    def last(self) -> str:
        """The observation before the next action; injected errors are not considered."""
        return self.steps[self.at - 1].observation if self.at else self.first_observation

    @property
    def left(self) -> tuple[str, ...]:
        """The remaining actions, beginning with the next action."""
        return tuple(step.action for step in self.steps[self.at :])

    @property
    def done(self) -> tuple[Step, ...]:
        return self.steps[: self.at]

    @cached_property
    def seen(self) -> str:
        """All text that the agent has read or written so far, in lower case, without the prompt's worked example."""
        parts = [self.rules, self.goal, self.first_observation]
        for step in self.done:
            parts += [step.action, step.observation]
        return "\n".join(parts).lower()

    def parse(self, action: str) -> Action | None:
        return self.surface.parse(action.strip())

    def knows(self, *names: str) -> bool:
        """Return whether each name occurs in `seen` as a separate word."""
        return all(mentions(self.seen, name) for name in names)

    def ahead(self, moves: frozenset[str]) -> tuple[str, Action | None]:
        """Return the next action whose name is not in `moves`: it is the purpose of the moves before."""
        for text in self.left:
            parsed = self.parse(text)
            if parsed is None or parsed.name not in moves:
                return text, parsed
        return self.left[-1], self.parse(self.left[-1])

    @property
    def due(self) -> str | None:
        """The subgoal that the remaining steps complete first; None if they complete none."""
        for step in self.steps[self.at :]:
            if step.completed:
                return self.task.subgoals[step.completed[0]]
        return None


def mentions(text: str, name: str) -> bool:
    """Return whether `name` stands in `text` as separate words, in any case.

    The search uses no regular expressions, because compiling one for each name would take too long.
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
