"""Limit the number of concurrent requests to a model; reduce the limit while the server is overloaded.

Requests beyond the server's batch wait in its queue without a cost: with all episodes in flight, all advance equally
and end at nearly the same time. Conversations beyond the server's key-value cache are expensive: each pushes out the
one that comes next, and every turn computes all earlier turns again. So the cache's size limits the conversations.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

MOST = 512
"""Maximum number of slots for each server; more than the 416 tasks of a suite, so all tasks can run at once."""
_CONVERSATION_TOKENS = 3_000
"""Tokens of the key-value cache that one conversation needs: 30 turns of 80 tokens, and a share of the prompts. In a
simulation of 416 conversations the server computed no turn twice; with 2,000 tokens it took up to 1.7 times as long."""
_FEWEST = 8
"""Minimum number of concurrent conversations, even if the cache is too small for them: small batches are slow. On a CPU
with 8,192 tokens of cache, a turn took 0.77 s of CPU time with eight conversations, and 2.07 s with two."""
_BACK_OFF = 0.7
_REFUSED_AGAIN_S = 1.0
"""Minimum seconds between two reductions after refusals: refusals in quick succession have the same cause."""
_PREEMPTED_AGAIN_S = 5.0
"""Minimum seconds between two reductions after preemptions: a little more than two readings of the metrics."""


class Slots:
    """A semaphore for requests to the model with a variable `limit`, which also limits the episodes in flight."""

    def __init__(
        self, most: int, *, pinned: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`pinned`: the user set the number, so it does not change."""
        self.most = self._asked = most
        self.limit = most
        self.pinned = pinned
        self.busy = 0
        """Number of requests at the model now."""
        self.episodes = 0
        """Number of episodes in flight now."""
        self.replies = 0
        """Number of replies so far."""
        self.overloads = 0
        """Number of refusals (429, 503) so far."""
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._changed = asyncio.Event()
        """Set when an episode has ended or the limit has changed; `change` clears it."""
        self._allowed = 0.0
        self._allowed_since = clock()
        self._backed_off = -1e9
        self._replies_then = 0
        """Value of `replies` at the last change of the limit."""

    @property
    def has_room(self) -> bool:
        """Whether one more episode may start."""
        return self.episodes < self.limit

    def begin_episode(self) -> None:
        self.episodes += 1

    def end_episode(self) -> None:
        self.episodes -= 1
        self.wake()

    def wake(self) -> None:
        """Wake the tasks that wait to start an episode."""
        self._changed.set()

    async def change(self) -> None:
        """Wait until an episode ends, the limit changes or `wake` is called; an event since the last wait counts."""
        await self._changed.wait()
        self._changed.clear()

    def allowed_slot_s(self) -> float:
        """Return slots times seconds so far."""
        self._count_allowed()
        return self._allowed

    def _count_allowed(self) -> None:
        """Add the time since the last call. Call this before the limit changes."""
        now = self._clock()
        self._allowed += self.limit * (now - self._allowed_since)
        self._allowed_since = now

    async def take(self) -> None:
        """Wait for a slot for one request; call `leave` after the reply or failure."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            elif turn in self._waiting:  # `_admit` may have removed it
                self._waiting.remove(turn)
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

    def set_cache(self, tokens: float) -> None:
        """Limit the conversations to the number that fits into the servers' caches of `tokens` in total."""
        if not self.pinned:
            self.most = min(self._asked, max(_FEWEST, int(tokens / _CONVERSATION_TOKENS)))
            if self.limit > self.most:
                self._set_limit(self.most)

    def _admit(self) -> None:
        while self._waiting and self.busy < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self.busy += 1
                turn.set_result(None)

    def count_reply(self) -> None:
        """Count a reply. Add one slot when the replies since the last change are as many as the slots."""
        self.replies += 1
        if self.limit < self.most and self.replies - self._replies_then >= self.limit:
            self._set_limit(self.limit + 1)

    def count_overload(self) -> None:
        """Count a refusal (429 or 503) and reduce the limit."""
        self.overloads += 1
        self._back_off(_REFUSED_AGAIN_S)

    def note_preemption(self) -> None:
        """Reduce the limit: since the last reading, the server has preempted running requests, so its cache is full."""
        self._back_off(_PREEMPTED_AGAIN_S)

    def _back_off(self, at_least_s: float) -> None:
        if not self.pinned and self._clock() - self._backed_off > at_least_s:
            self._backed_off = self._clock()
            self._set_limit(max(1, int(min(self.limit, max(self.busy, 1)) * _BACK_OFF)))

    def _set_limit(self, limit: int) -> None:
        self._count_allowed()
        self.limit, self._replies_then = limit, self.replies
        self._admit()
        self.wake()
