"""Progress: by subgoal phrases, as published, or by a game's own points."""

from __future__ import annotations

from collections.abc import Sequence

from evalharness.envs.jericho.interpreter import Interpreter
from evalharness.envs.jericho.observation import letters


class LabelProgress:
    """Which phrases have been seen. One phrase at most counts per turn, the first unseen one that matches."""

    def __init__(self, subgoals: Sequence[str]) -> None:
        self._patterns = [letters(subgoal) for subgoal in subgoals]
        self._unseen = list(range(len(subgoals)))

    @property
    def rate(self) -> float:
        """Seen phrases as a fraction of all; 0 where there are none."""
        count = len(self._patterns)
        return (count - len(self._unseen)) / count if count else 0.0

    @property
    def complete(self) -> bool:
        return bool(self._patterns) and not self._unseen

    def update(self, observation: str) -> tuple[int, ...]:
        """Count what this observation completes; returns its index, or nothing."""
        text = letters(observation)
        for index in self._unseen:
            if self._patterns[index] in text:
                self._unseen.remove(index)
                return (index,)
        return ()


class OwnScore:
    """A game's own points: the highest score reached, over all its beginnings."""

    def __init__(self) -> None:
        self._highest, self._most = 0, 0

    def see(self, interpreter: Interpreter) -> None:
        self._most = int(interpreter.frotz.get_max_score())
        self._highest = max(self._highest, int(interpreter.frotz.get_score()))

    @property
    def rate(self) -> float:
        """The highest score as a fraction of the game's most."""
        return min(1.0, self._highest / self._most) if self._most > 0 else 0.0

    @property
    def complete(self) -> bool:
        return self._most > 0 and self._highest >= self._most
