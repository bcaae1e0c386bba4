"""Which conversations go on at once, so that the servers' key-value cache holds all of them.

A conversation is asked about again and again, each time with all that was said before; what of that is still in the
server's prefix cache is not computed again. Where more conversations take turns than the cache holds, each pushes out
the one that comes next, and all of it is computed again every turn: on two cores 84 conversations in a cache of 93,000
tokens came to 0.7 turns/s and less. So those that have begun go on, and the others wait.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import inf

_FULL = 0.95
"""Share of the cache that is given away: replies are still being written."""


@dataclass
class _Talk:
    family: str
    tokens: int


class CacheRoom:
    """Conversations by key, the oldest first. Without a known capacity all may go on."""

    def __init__(self) -> None:
        self.capacity: float | None = None
        """Tokens that the caches of all servers hold; None where nobody says so."""
        self._heads: dict[str, int] = {}
        """Family -> tokens that all its conversations begin with, at most: they are held once."""
        self._talks: dict[Hashable, _Talk] = {}
        self._open: dict[Hashable, None] = {}
        self._longest = 0
        """Own tokens of the longest so far."""
        self._ended = 0
        self._ended_tokens = 0
        """Own tokens of those that have ended, together."""

    @property
    def going_on(self) -> int:
        """Conversations."""
        return len(self._open)

    @property
    def is_full(self) -> bool:
        """Whether no other conversation should begin."""
        return self._usual() > self.spare()

    def spare(self) -> float:
        """Tokens that are left for others when those that go on have become as long as conversations usually become.
        Endless where none goes on: however long one is, it may."""
        if self.capacity is None or not self._open:
            return inf
        usual = self._usual()
        return _FULL * self.capacity - self._shared() - sum(max(usual, self._own(key)) for key in self._open)

    def needs(self, key: Hashable) -> float:
        """Tokens that a conversation takes of what is spare: where that is no less, its next request may be sent. Less
        than nothing where it goes on already."""
        return -inf if key in self._open else max(self._usual(), self._own(key))

    def goes_on(self, key: Hashable) -> None:
        """Its next request is sent."""
        self._open[key] = None

    def answered(self, key: Hashable, family: str, tokens: int) -> None:
        """It has so many tokens now, prompt and reply. Where it has outgrown the cache, the youngest one waits."""
        self._heads[family] = min(tokens, self._heads.get(family, tokens))
        self._talks[key] = _Talk(family, tokens)
        self._longest = max(self._longest, self._own(key))
        if self.capacity is None:
            return
        while (
            len(self._open) > 1 and sum(map(self._own, self._open)) + self._shared() > _FULL * self.capacity
        ):
            self._open.popitem()

    def ended(self, key: Hashable) -> None:
        if key in self._talks:
            self._ended += 1
            self._ended_tokens += self._own(key)
        self._talks.pop(key, None)
        self._open.pop(key, None)

    def _shared(self) -> int:
        families = {talk.family for key in self._open if (talk := self._talks.get(key)) is not None}
        return sum(self._heads[family] for family in families)

    def _own(self, key: Hashable) -> int:
        """Tokens that no other conversation begins with."""
        talk = self._talks.get(key)
        return 0 if talk is None else talk.tokens - self._heads[talk.family]

    def _usual(self) -> float:
        """Own tokens of a conversation at its end: the mean, and before the first has ended what the longest has."""
        return self._ended_tokens / self._ended if self._ended else self._longest
