"""The progress of an episode, by the published labels or by the simulator's own score."""

from __future__ import annotations

import re
from collections.abc import Sequence


def _pattern(subgoal: str) -> re.Pattern[str]:
    """Compile a label as a regular expression; an invalid one is taken literally."""
    try:
        return re.compile(subgoal)
    except re.error:
        return re.compile(re.escape(subgoal))


class LabelProgress:
    """Published rule: a subgoal is done once an observation contains it, in any order, several at once, permanently.

    The first observation and the list of valid actions are not searched.
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
    """Return the simulator's score as a progress rate: 0 at the start, 1 at its full score.

    The simulator gives points for facts before the first action (its "be in same location as ..." is true for the
    first room's content); these points, `at_start`, are no progress. A failed task has score -1 and no progress.
    """
    return min(max((score - at_start) / (1.0 - at_start), 0.0), 1.0)
