"""Decide which conversations may send requests, so that all of them fit the servers' key-value cache.

Each request of a conversation repeats all earlier turns. The server computes only those that are no longer in its
prefix cache. If too many conversations take turns, each one removes the next one from the cache, and every turn
computes everything again: on two cores, 84 conversations and a cache of 93,000 tokens gave less than 0.7 turns/s.
So conversations that have begun continue, and the others wait.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import inf

_FULL = 0.8
"""Share of the cache that conversations may fill. The rest is for replies that are being generated, and for the first
turns, which are counted as shared. If the cache is slightly too small, nearly every lookup misses."""
_FIRST = 2_500
"""Expected unshared tokens of a conversation until the first conversation has ended: 30 turns of 80 tokens."""


@dataclass
class _Conversation:
    family: str
    tokens: int


class CacheRoom:
    """The room in the cache for conversations. If the capacity is not known, all conversations may continue."""

    def __init__(self) -> None:
        self.capacity: float | None = None
        """Total size of all servers' caches in tokens; None if a server does not report its size."""
        self._heads: dict[str, int] = {}
        """Family -> tokens of the prompt that all its conversations share; the cache stores these tokens once."""
        self._conversations: dict[Hashable, _Conversation] = {}
        self._continuing: dict[Hashable, None] = {}
        self._longest = 0
        """Largest number of unshared tokens of a conversation so far."""
        self._one_ended = False

    @property
    def continuing(self) -> int:
        """Return the number of conversations that may send requests."""
        return len(self._continuing)

    @property
    def is_full(self) -> bool:
        """Return whether no further conversation should begin."""
        return self._expected() > self.spare()

    def spare(self) -> float:
        """Return the free tokens after the continuing conversations have reached their expected length; infinite
        if no conversation continues, so that one of any length may begin."""
        if self.capacity is None or not self._continuing:
            return inf
        expected = self._expected()
        return (
            _FULL * self.capacity
            - self._shared()
            - sum(max(expected, self._own(key)) for key in self._continuing)
        )

    def needs(self, key: Hashable) -> float:
        """Return the tokens that a conversation will need. Its next request may be sent if `spare` is at least this
        number. A conversation that continues needs nothing more (minus infinity)."""
        return -inf if key in self._continuing else max(self._expected(), self._own(key))

    def note_request(self, key: Hashable) -> None:
        """Note that the conversation's next request is sent."""
        self._continuing[key] = None

    def note_reply(self, key: Hashable, family: str, tokens: int) -> None:
        """Note the tokens of the last prompt and reply. If the cache is now too small, the youngest conversation
        waits."""
        self._heads[family] = min(tokens, self._heads.get(family, tokens))
        self._conversations[key] = _Conversation(family, tokens)
        self._longest = max(self._longest, self._own(key))
        if self.capacity is None:
            return
        limit = _FULL * self.capacity
        while len(self._continuing) > 1 and sum(map(self._own, self._continuing)) + self._shared() > limit:
            self._continuing.popitem()

    def end(self, key: Hashable) -> None:
        self._one_ended = self._one_ended or key in self._conversations
        self._conversations.pop(key, None)
        self._continuing.pop(key, None)

    def _shared(self) -> int:
        known = [self._conversations[key] for key in self._continuing if key in self._conversations]
        families = {conversation.family for conversation in known}
        return sum(self._heads[family] for family in families)

    def _own(self, key: Hashable) -> int:
        """Return the conversation's tokens without those that its family shares."""
        conversation = self._conversations.get(key)
        return 0 if conversation is None else conversation.tokens - self._heads[conversation.family]

    def _expected(self) -> int:
        """Return the expected unshared tokens of a conversation: those of the longest so far. The mean would be too
        small, since solved tasks end first; too many conversations cost more than too few."""
        return self._longest if self._one_ended else max(self._longest, _FIRST)
