"""How far an episode has come, under the published labels or by the simulator's own score."""

from __future__ import annotations

import re
from collections.abc import Sequence


def _pattern(subgoal: str) -> re.Pattern[str]:
    """A label is a regular expression; one that does not compile is taken literally."""
    try:
        return re.compile(subgoal)
    except re.error:
        return re.compile(re.escape(subgoal))


class LabelProgress:
    """Published rule: a subgoal is done once an observation contains it, in any order, several at once, for good.

    The first observation and the list of valid actions are not searched.
    """

    def __init__(self, subgoals: Sequence[str]) -> None:
        self._patterns = [_pattern(subgoal) for subgoal in subgoals]
        self.done = [False] * len(self._patterns)

    def see(self, observation: str) -> tuple[int, ...]:
        """The subgoals that this observation completed."""
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
    """The simulator's score as a progress rate: 0 at the start, 1 at its full score.

    The simulator gives points for what is there before the first action (its "be in same location as ..." is true of
    what the first room holds); these `at_start` are no progress. A failed task, -1 there, counts as no progress.
    """
    return min(max((score - at_start) / (1.0 - at_start), 0.0), 1.0)
