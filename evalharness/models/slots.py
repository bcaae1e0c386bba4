"""How many requests are at the model at once: a fixed number, less while the server says that it is too much.

More requests than the server works on at once wait in its queue, which costs nothing: with all episodes in flight, all
advance alike and end at nearly the same time. More conversations than its key-value cache holds cost much: these wait
here (`cache_room`).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from evalharness.models.cache_room import CacheRoom

MOST = 512
"""For each server: all 416 tasks of a suite at once. vLLM runs 256 sequences by default and queues the rest."""
_BACK_OFF = 0.7
_REFUSED_AGAIN_S = 1.0
"""Seconds until another refusal counts: those of a burst have one cause."""
_PREEMPTED_AGAIN_S = 5.0
"""The same for preemptions: two looks at the server, and a little more."""


@dataclass(frozen=True, eq=False)
class _Waiting:
    """A request that waits for its slot."""

    turn: asyncio.Future[None]
    conversation: Hashable | None


class Slots:
    """The slots at the model: who waits longest is served first. `limit` also bounds the episodes in flight."""

    def __init__(
        self, most: int, *, pinned: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`pinned`: the user named the number, and it stays."""
        self.most = most
        self.limit = most
        self.pinned = pinned
        self.busy = 0
        """Number of requests at the model now."""
        self.episodes = 0
        """Number of episodes in flight now."""
        self.room = CacheRoom()
        self.replies = 0
        """So far."""
        self.overloads = 0
        """Refusals (429, 503) so far."""
        self._clock = clock
        self._waiting: deque[_Waiting] = deque()
        self._changed = asyncio.Event()
        """Set when an episode has ended or the limit has changed; cleared by who waits for it."""
        self._allowed = 0.0
        self._allowed_since = clock()
        self._allowed_now = most
        self._backed_off = -1e9
        self._replies_then = 0
        """`replies` when the limit changed last."""

    @property
    def has_room(self) -> bool:
        """Whether one more episode may start."""
        return self.episodes < self.limit and (self.pinned or not self.room.is_full)

    def begin_episode(self) -> None:
        self.episodes += 1

    def end_episode(self) -> None:
        self.episodes -= 1
        self.wake()

    def wake(self) -> None:
        """Wake those that wait to start an episode."""
        self._changed.set()

    async def change(self) -> None:
        """Wait until an episode has ended, the limit has changed, or somebody called `wake`, since the last wait."""
        await self._changed.wait()
        self._changed.clear()

    def allowed_slot_s(self) -> float:
        """Slots at the model times seconds, so far: where the cache is full, only as many as conversations go on."""
        self._count_allowed()
        return self._allowed

    def _count_allowed(self) -> None:
        """Add the time since the last call. Call this whenever the number of allowed slots may change."""
        now = self._clock()
        self._allowed += self._allowed_now * (now - self._allowed_since)
        self._allowed_since = now
        self._allowed_now = min(self.limit, self.room.continuing) if self.room.is_full else self.limit

    async def take(self, conversation: Hashable | None = None) -> None:
        """Wait for a slot for one request; `leave` once it is answered, or has failed. `conversation`: what it goes on
        with, where the server's cache is to hold it."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(turn, conversation)
        self._waiting.append(waiting)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            elif waiting in self._waiting:  # else its turn had come meanwhile, and found it gone
                self._waiting.remove(waiting)
            raise

    def leave(self) -> None:
        self.busy -= 1
        self._admit()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot for one request."""
        await self.take()
        try:
            yield
        finally:
            self.leave()

    def end_conversation(self, conversation: Hashable) -> None:
        """Nothing more is asked about it: others may go on."""
        self.room.end(conversation)
        self._admit()

    def set_cache(self, tokens: float) -> None:
        """What the servers say that their caches hold together."""
        self.room.capacity = tokens
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self.busy < self.limit:
            spare = self.room.spare()
            waiting = next((w for w in self._waiting if self._fits(w.conversation, spare)), None)
            if waiting is None:
                break
            self._waiting.remove(waiting)
            if not waiting.turn.done():
                self.busy += 1
                if waiting.conversation is not None:
                    self.room.note_request(waiting.conversation)
                waiting.turn.set_result(None)
        self._count_allowed()

    def _fits(self, conversation: Hashable | None, spare: float) -> bool:
        return conversation is None or self.room.needs(conversation) <= spare

    def count_reply(self) -> None:
        """A reply came. As many as there are slots without trouble are worth one slot more."""
        self.replies += 1
        if self.limit < self.most and self.replies - self._replies_then >= self.limit:
            self._set_limit(self.limit + 1)

    def count_overload(self) -> None:
        """The server refused a request with 429 or 503."""
        self.overloads += 1
        self._back_off(_REFUSED_AGAIN_S)

    def note_preemption(self) -> None:
        """The server threw out requests that it was working on since the last look at it: its cache is full."""
        self._back_off(_PREEMPTED_AGAIN_S)

    def _back_off(self, at_least_s: float) -> None:
        if not self.pinned and self._clock() - self._backed_off > at_least_s:
            self._backed_off = self._clock()
            self._set_limit(max(1, int(min(self.limit, max(self.busy, 1)) * _BACK_OFF)))

    def _set_limit(self, limit: int) -> None:
        self.limit, self._replies_then = limit, self.replies
        self._admit()
        self.wake()
