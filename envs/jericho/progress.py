"""Progress by subgoal phrases, as published."""

from __future__ import annotations

from collections.abc import Sequence

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
