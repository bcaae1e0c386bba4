"""AgentBoard's labels: sentences with wildcards that an observation is searched for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

_WILDCARD = re.compile(r"\*+")


@cache
def _pieces(pattern: str) -> tuple[str, ...]:
    return tuple(_WILDCARD.split(pattern.strip(".")))


def matches(pattern: str, sentences: Sequence[str]) -> bool:
    """Whether all the pieces between the wildcards occur, in any order, in one sentence of an observation."""
    pieces = _pieces(pattern)
    return any(all(piece in sentence for piece in pieces) for sentence in sentences)


class LabelProgress:
    """How many of a task's labelled observations have been seen; at most one is granted a step.

    `alternatives` are whole label lists of the same length: position i counts when the i-th pattern of any list
    matches.
    """

    def __init__(self, alternatives: Sequence[Sequence[str]]) -> None:
        self.alternatives = [tuple(patterns) for patterns in alternatives]
        self._total = len(self.alternatives[0])
        self._open = list(range(self._total))

    @property
    def rate(self) -> float:
        return (self._total - len(self._open)) / self._total

    @property
    def remaining(self) -> tuple[int, ...]:
        return tuple(self._open)

    def restore(self, remaining: Iterable[int]) -> None:
        """Go back to a value of `remaining`."""
        self._open = list(remaining)

    def observe(self, observation: str) -> tuple[int, ...]:
        """The positions that this observation completes: none or one."""
        sentences = observation.split(".")
        for patterns in self.alternatives:
            for position in self._open:
                if matches(patterns[position], sentences):
                    self._open.remove(position)
                    return (position,)
        return ()
