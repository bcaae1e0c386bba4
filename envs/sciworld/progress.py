"""Compute the progress of an episode from AgentBoard's labels, or from the simulator's score."""

from __future__ import annotations

import re
from collections.abc import Sequence


def _pattern(subgoal: str) -> re.Pattern[str]:
    """Compile a subgoal as a regular expression. If it is no valid expression, match it literally."""
    try:
        return re.compile(subgoal)
    except re.error:
        return re.compile(re.escape(subgoal))


class LabelProgress:
    """Progress by AgentBoard's rule: a subgoal is reached when an observation matches it, and then stays reached.

    Subgoals may be reached in any order, and several in one step. The first observation and the answer to the help
    action do not count.
    """

    def __init__(self, subgoals: Sequence[str]) -> None:
        self._patterns = [_pattern(subgoal) for subgoal in subgoals]
        self.done = [False] * len(self._patterns)

    def see(self, observation: str) -> tuple[int, ...]:
        """Return the indices of the subgoals that this observation completes."""
        new = [
            index
            for index, pattern in enumerate(self._patterns)
            if not self.done[index] and pattern.search(observation)
        ]
        for index in new:
            self.done[index] = True
        return tuple(new)

    @property
    def rate(self) -> float:
        return sum(self.done) / len(self.done)

    @property
    def success(self) -> bool:
        return all(self.done)


def score_progress(score: float, at_start: float = 0.0) -> float:
    """Convert the simulator's score to a progress rate: 0 at the start, 1 at the full score, 0 for a failed task (-1).

    `at_start`: score before the first action, which does not count. The simulator gives points there if, for example,
    the wanted object is in the first room ("be in same location as ...").
    """
    return min(max((score - at_start) / (1.0 - at_start), 0.0), 1.0)
