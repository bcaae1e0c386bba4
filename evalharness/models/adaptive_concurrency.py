"""How many episodes are in flight: pinned by the user, or found while the run goes on.

A server's throughput grows with the number of requests until it is saturated; from there on only the latency
grows, the key-value cache fills up and conversations push each other out of the prefix cache. So the limit is
doubled as long as that pays, and taken back at once when the server says that it is too much (429, 503, a queue of
its own) or when throughput collapses.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from evalharness.models.cache_room import CacheRoom

START = 32
"""Episodes in flight at the start: below what a small server takes, and three doublings below what a big one does."""
CEILING = 512
"""For each server. vLLM runs 256 sequences at once by default (1,024 on the largest GPUs) and queues the rest."""
_GAIN = 1.1
"""A doubling has to raise the throughput by so much to count as growth; above the noise of a window."""
_COLLAPSE = 0.7
"""Throughput at an unchanged limit, against before, that twice in a row counts as a collapse: once is noise."""
_BACK_OFF = 0.7
_PROBE_AFTER = 8
"""Windows without trouble before more is tried again; twice as many after each trial that gained nothing."""
_PREEMPTED_AGAIN_S = 5.0
"""Two looks at the server, and a little more."""
_TAKEN = 0.75
"""Share of the slots that are taken in a window that says something about the limit."""
_EMPTY_FOR = 8
"""Windows in a row with empty slots, after which it is no longer the start of environments that leaves them empty."""
_WINDOW_S = 0.5
"""Shortest time that a throughput is measured over."""


@dataclass(frozen=True)
class Window:
    """What was seen at one limit."""

    turns: int
    seconds: float
    full: bool
    """As much was in flight as allowed: else the throughput says nothing about the limit."""

    @property
    def rate(self) -> float:
        """Turns a second."""
        return self.turns / self.seconds


@dataclass(frozen=True, eq=False)
class _Waiting:
    """A request that waits for its slot."""

    turn: asyncio.Future[None]
    family: str
    turns_left: float
    """Of its episode, expected."""
    conversation: Hashable | None


def ceiling(servers: int, max_num_seqs: int | None, episodes: int) -> int:
    """How many episodes may be in flight at most. `max_num_seqs`: sequences that a server runs at once, where that is
    known: what more it is given only waits there."""
    each = CEILING if max_num_seqs is None else min(CEILING, max_num_seqs)
    return max(1, min(servers * each, episodes))


def whole_waves(limit: int, left: int) -> int:
    """How many episodes are in flight so that the `left` unfinished ones make whole waves: 416 on 64 slots are six
    waves of 70 and not six and a half, the last of which leaves half the slots empty. At most half as many again as
    slots: each is a conversation in the server's cache."""
    if left <= limit:
        return limit
    return min(-(-left // (left // limit)), limit + limit // 2)


class AutoLimit:
    """The search itself: windows in, limit out. Pure."""

    def __init__(self, ceiling: int) -> None:
        self.ceiling = max(1, ceiling)
        self.limit = min(START, self.ceiling)
        self._before: tuple[int, float] | None = None
        """(limit, rate) before the last growth, while that is on trial."""
        self._probe_after = _PROBE_AFTER
        self._quiet = self._probe_after
        """Windows since something spoke against more; starts as if nothing ever had."""

    @property
    def state(self) -> str:
        if self._before is not None or self._quiet >= self._probe_after:
            return "at its ceiling" if self.limit == self.ceiling else "growing"
        return "holding"

    def window(self, seen: Window) -> None:
        if not seen.full:
            return
        if self._before is not None:
            smaller, rate = self._before
            self._before = None
            if seen.rate < rate * _GAIN:
                # No gain: what more there is in flight only waits in the server's queue.
                self.retreat(smaller)
                self._probe_after *= 2
                return
            self._grow(seen.rate)
        elif self._quiet >= self._probe_after:
            self._grow(seen.rate)
        else:
            self._quiet += 1

    def _grow(self, rate: float) -> None:
        if self.limit < self.ceiling:
            self._before = (self.limit, rate)
            self.limit = min(2 * self.limit, self.ceiling)

    def retreat(self, limit: int) -> None:
        """Something speaks against more than that."""
        self.limit = max(1, min(limit, self.limit))
        self._before = None
        self._quiet = 0


class AdaptiveConcurrency:
    """The slots at the model: who waits longest is served first, but see `wanting`. `limit` also bounds the episodes in
    flight."""

    def __init__(
        self, pinned: int | None, ceiling: int = CEILING, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.pinned = pinned
        self._auto = AutoLimit(ceiling) if pinned is None else None
        self._clock = clock
        self._busy = 0
        self._waiting: deque[_Waiting] = deque()
        self.wanting: Mapping[str, float] | None = {}
        """Families whose further episodes wait for an environment to come free, with the turns of that wait: who has
        the longest is served first. None where no episode waits to begin: who has most turns left is served first, so
        that all end together and no slot is empty before."""
        self.room = CacheRoom()
        self._episodes = 0
        self._changed = asyncio.Event()
        """Set when an episode has ended or the limit has changed; cleared by who waits for it."""
        self.highest = self.limit
        self._allowed = 0.0
        self._allowed_since = clock()
        self._allowed_now = self.limit
        self.replies = 0
        """So far."""
        self.overloads = 0
        """Refusals (429, 503) so far."""
        self._last_back_off = -1e9
        self._last_rate: tuple[int, float] | None = None
        self._low = 0
        """Windows in a row with a throughput that has fallen."""
        self._empty = 0
        """Windows in a row in which slots were empty."""
        self._too_full = False
        """The server has refused, preempted or collapsed: it holds no more conversations than are asked about."""
        self._restart_window()

    @property
    def limit(self) -> int:
        if self._auto is not None:
            return self._auto.limit
        assert self.pinned is not None
        return self.pinned

    @property
    def busy(self) -> int:
        """Requests at the model now."""
        return self._busy

    @property
    def episodes(self) -> int:
        """In flight now."""
        return self._episodes

    @property
    def has_room(self) -> bool:
        """Whether one more episode may start."""
        return self._episodes < self.limit

    def has_room_for(self, left: int) -> bool:
        """Whether one more episode may start where `left` are unfinished, those in flight included. Requests wait for
        their slots as ever. Where the user named the number, or the server was too full before, the limit holds."""
        if self.pinned is not None or self._too_full:
            return self.has_room
        if self.room.is_full:
            return False
        return self._episodes < whole_waves(self.limit, left)

    def begin_episode(self) -> None:
        self._episodes += 1

    def end_episode(self) -> None:
        self._episodes -= 1
        self.wake()

    def wake(self) -> None:
        """Something has changed that decides whether an episode may start."""
        self._changed.set()

    async def change(self) -> None:
        """Wait until an episode has ended, the limit has changed, or somebody called `wake`, since the last wait."""
        await self._changed.wait()
        self._changed.clear()

    @property
    def state(self) -> str:
        """For whoever looks: is the search still going on?"""
        return "pinned" if self._auto is None else self._auto.state

    def allowed_slot_s(self) -> float:
        """Slots at the model times seconds, so far: where the cache is full, only as many as conversations go on."""
        self._count_allowed()
        return self._allowed

    def _count_allowed(self) -> None:
        """Called wherever their number may have changed."""
        now = self._clock()
        self._allowed += self._allowed_now * (now - self._allowed_since)
        self._allowed_since = now
        self._allowed_now = min(self.limit, self.room.going_on) if self.room.is_full else self.limit

    async def take_slot(
        self, family: str = "", turns_left: float = 0.0, conversation: Hashable | None = None
    ) -> None:
        """Wait for a slot for one request; `leave_slot` once it is answered, or has failed. `conversation`: what it
        goes on with, where the server's cache is to hold it."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(turn, family, turns_left, conversation)
        self._waiting.append(waiting)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave_slot()
            elif waiting in self._waiting:  # else its turn had come meanwhile, and found it gone
                self._waiting.remove(waiting)
            raise

    def leave_slot(self) -> None:
        self._busy -= 1
        self._admit()

    def ended(self, conversation: Hashable) -> None:
        """Nothing more is asked about it: others may go on."""
        self.room.ended(conversation)
        self._admit()

    def cache_holds(self, tokens: float) -> None:
        """What the servers say that their caches hold together."""
        self.room.capacity = tokens
        self._admit()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot for one request."""
        await self.take_slot()
        try:
            yield
        finally:
            self.leave_slot()

    def _admit(self) -> None:
        self._admit_all()
        self._count_allowed()

    def _admit_all(self) -> None:
        while self._waiting and self._busy < self.limit:
            spare = self.room.spare()
            may = [
                w for w in self._waiting if w.conversation is None or self.room.needs(w.conversation) <= spare
            ]
            if not may:
                return
            waiting = max(may, key=self._urgency)  # the first of equals
            self._waiting.remove(waiting)
            if not waiting.turn.done():
                self._busy += 1
                if waiting.conversation is not None:
                    self.room.goes_on(waiting.conversation)
                waiting.turn.set_result(None)

    def _urgency(self, waiting: _Waiting) -> float:
        return waiting.turns_left if self.wanting is None else self.wanting.get(waiting.family, 0.0)

    def _restart_window(self) -> None:
        self._settle = self.limit // 2
        """Replies to let pass first: they were asked for under the limit before."""
        self._turns = 0
        self._full = False
        self._began = self._clock()
        self._busy_seen = 0

    def answered(self) -> None:
        """A reply came."""
        self.replies += 1
        if self._auto is None:
            return
        if self._settle > 0:
            self._settle -= 1
            self._began = self._clock()
            return
        self._turns += 1
        self._busy_seen += self._busy + 1  # with the one that was just answered
        self._full = self._full or not self.has_room
        seconds = self._clock() - self._began
        if self._turns < max(self.limit, 8) or seconds < _WINDOW_S:
            return
        window = Window(self._turns, seconds, self._full and self._slots_taken())
        before = self.limit
        if not self._has_collapsed(window):
            self._auto.window(window)
        self._limit_was(before)

    def _slots_taken(self) -> bool:
        """Whether most slots were taken, or have not been for so long that it is the environments' work that leaves
        them empty: more episodes may fill them."""
        if self._busy_seen / self._turns >= _TAKEN * self.limit:
            self._empty = 0
            return True
        self._empty += 1
        return self._empty >= _EMPTY_FOR

    def _has_collapsed(self, window: Window) -> bool:
        """At an unchanged limit the throughput has fallen: conversations have outgrown what the server can hold."""
        assert self._auto is not None
        if not window.full:
            return False
        limit, rate = self._last_rate or (0, 0.0)
        self._low = self._low + 1 if limit == self.limit > START and window.rate < rate * _COLLAPSE else 0
        if self._low == 1:
            return False  # noise, perhaps: what the throughput was stays remembered
        self._last_rate = (self.limit, window.rate)
        if self._low == 0:
            return False
        self._low = 0
        self._too_full = True
        self._auto.retreat(int(limit * _BACK_OFF))
        return True

    def overloaded(self) -> None:
        """The server refused a request with 429 or 503. Of a burst of refusals only the first one counts."""
        self.overloads += 1
        self._too_full = True
        if self._clock() - self._last_back_off > 1.0:
            self._last_back_off = self._clock()
            self._retreat(int(min(self.limit, max(self._busy, 1)) * _BACK_OFF))

    def saturated(self, running: int) -> None:
        """The server itself reports a queue behind `running` requests: more would wait, too."""
        if running < self.limit:
            self._retreat(max(running, int(self.limit * _BACK_OFF)))
        else:
            self._restart_window()

    def preempted(self) -> None:
        """The server threw out requests that it was working on since the last look at it: its cache does not hold as
        many conversations. Those that follow a step back at once do not count: they were there before."""
        self._too_full = True
        if self._clock() - self._last_back_off > _PREEMPTED_AGAIN_S:
            self._last_back_off = self._clock()
            self._retreat(int(self.limit * _BACK_OFF))

    def _retreat(self, limit: int) -> None:
        if self._auto is not None:
            before = self.limit
            self._auto.retreat(limit)
            self._limit_was(before)

    def _limit_was(self, before: int) -> None:
        self._restart_window()
        if self.limit != before:
            self.highest = max(self.highest, self.limit)
            self._admit()
            self.wake()
