"""Decides which conversations may send requests, so that the servers' key-value cache holds all of them.

Each request of a conversation repeats all earlier turns. The server computes only those that are no longer in its
prefix cache. If more conversations take turns than the cache holds, each removes the one that comes next, and every
turn computes everything again: on two cores, 84 conversations and a cache of 93,000 tokens gave less than 0.7 turns/s.
So conversations that have begun continue, and the others wait.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import inf

_FULL = 0.8
"""Share of the cache that is planned for. The rest is for replies that are being written, and for the first turns,
which are counted as shared. A cache that is slightly too small loses nearly everything: each conversation pushes out
the one that comes next."""
_FIRST = 2_500
"""Own tokens that a conversation is expected to reach before one has ended: 30 turns of 80 tokens."""


@dataclass
class _Conversation:
    family: str
    tokens: int


class CacheRoom:
    """The conversations by key, the oldest first. If the capacity is not known, all may continue."""

    def __init__(self) -> None:
        self.capacity: float | None = None
        """Tokens that the caches of all servers hold together; None if a server does not report it."""
        self._heads: dict[str, int] = {}
        """Family -> tokens of the prompt that its conversations share; the cache holds them once."""
        self._conversations: dict[Hashable, _Conversation] = {}
        self._continuing: dict[Hashable, None] = {}
        self._longest = 0
        """Largest number of own tokens of a conversation so far."""
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
        """Return the tokens that remain when the continuing conversations have reached their expected length; infinite
        if none continues, so that one conversation of any length may begin."""
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
        """Note that its next request is sent."""
        self._continuing[key] = None

    def note_reply(self, key: Hashable, family: str, tokens: int) -> None:
        """Note its tokens, prompt and reply. If the cache no longer holds all conversations, the youngest one waits."""
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
        """Return its tokens without those that its family shares."""
        conversation = self._conversations.get(key)
        return 0 if conversation is None else conversation.tokens - self._heads[conversation.family]

    def _expected(self) -> int:
        """Return the own tokens that a conversation is expected to reach: those of the longest so far. The mean would
        be that of solved tasks, which end first, and too many conversations cost more than too few."""
        return self._longest if self._one_ended else max(self._longest, _FIRST)
