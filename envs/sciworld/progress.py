"""Compute the progress of an episode from the published labels or from the simulator's own score."""

from __future__ import annotations

import re
from collections.abc import Sequence


def _pattern(subgoal: str) -> re.Pattern[str]:
    """Compile a label as a regular expression; if it is invalid, match its literal text."""
    try:
        return re.compile(subgoal)
    except re.error:
        return re.compile(re.escape(subgoal))


class LabelProgress:
    """Progress by the published rule: a subgoal is reached, permanently, when an observation contains it.

    Subgoals may be reached in any order, and several at once. The first observation and the list of valid actions do
    not count.
    """

    def __init__(self, subgoals: Sequence[str]) -> None:
        self._patterns = [_pattern(subgoal) for subgoal in subgoals]
        self.done = [False] * len(self._patterns)

    def see(self, observation: str) -> tuple[int, ...]:
        """Return the subgoals that this observation completed."""
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
    """Return the simulator's score as a progress rate: 0 at the start, 1 at the full score.

    The simulator gives points for facts before the first action (its "be in same location as ..." is true for the
    content of the first room). These points, `at_start`, do not count. A failed task has score -1 and progress 0.
    """
    return min(max((score - at_start) / (1.0 - at_start), 0.0), 1.0)
