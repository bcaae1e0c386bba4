"""`--cost-limit`: what a run has spent on tokens, and when it stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from evalharness.models.base import Reply
from evalharness.models.tries import AbortedError
from evalharness.records.cost import Prices, Tokens
from evalharness.records.episode import Episode
from evalharness.records.store import EpisodeKey


@dataclass(frozen=True)
class TimeLimit:
    seconds: float | None
    clock: Callable[[], float] = time.monotonic
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float | None:
        """Seconds; None where there is no limit."""
        return None if self.seconds is None else max(0.0, self.began + self.seconds - self.clock())

    def reached(self) -> str | None:
        """Why nothing more is played; None while something may be."""
        if self.left is None or self.left > 0:
            return None
        return f"the time limit of {self.seconds:g} s (--time-limit) is reached"


NO_LIMIT = TimeLimit(None)


@dataclass
class Budget:
    """Counts every reply, of episodes that were not finished too: those were paid for."""

    prices: Prices
    limit: float | None
    spent: float = 0.0
    """By this run so far, earlier sessions included."""
    finished: int = 0
    """Episodes."""
    finished_cost: float = 0.0
    unfinished: Tokens = field(default_factory=Tokens)
    """Of turns whose episodes were given up or broken off, in earlier sessions too."""
    _running: dict[EpisodeKey, Tokens] = field(default_factory=dict)
    _asked: int = 0
    """Requests in flight."""
    _answered: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        self.spent += self.prices.of(self.unfinished)

    def count_stored(self, episode: Episode) -> None:
        """One that an earlier start finished."""
        tokens = Tokens(episode.prompt_tokens, episode.cached_tokens, episode.completion_tokens)
        cost = self.prices.of(tokens)
        self.finished += 1
        self.finished_cost += cost
        self.spent += cost

    def begin(self, key: EpisodeKey) -> None:
        self._running[key] = Tokens()

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """Around a request. Raises AbortedError instead when the limit is reached: not before the requests in flight
        are answered, which have to be paid for."""
        if (reason := self.reached()) is not None:
            async with self._answered:
                await self._answered.wait_for(lambda: not self._asked)
            raise AbortedError(reason)
        self._asked += 1
        try:
            yield
        finally:
            self._asked -= 1
            if not self._asked and self.reached():
                async with self._answered:
                    self._answered.notify_all()

    def count(self, key: EpisodeKey, reply: Reply) -> None:
        """Raises AbortedError where a limit cannot be kept because the server counts nothing."""
        if self.limit is not None and (reply.prompt_tokens is None or reply.completion_tokens is None):
            raise AbortedError(
                "the model's server reports no token counts, so --cost-limit cannot be kept; leave it out"
            )
        prompt = reply.prompt_tokens or 0
        tokens = Tokens(prompt, min(reply.cached_tokens or 0, prompt), reply.completion_tokens or 0)
        self._running[key] += tokens
        self.spent += self.prices.of(tokens)

    def end(self, key: EpisodeKey, *, whole: bool) -> None:
        tokens = self._running.pop(key)
        if whole:
            self.finished += 1
            self.finished_cost += self.prices.of(tokens)
        else:
            self.unfinished += tokens

    def reached(self) -> str | None:
        """Why no turn more may be asked for; None while one may."""
        if self.limit is None or self.spent < self.limit:
            return None
        return self._reason

    def nearly_reached(self) -> str | None:
        """Why no further episode should begin: those in flight are expected to need the rest. What an episode costs
        is known from the first finished one on."""
        if self.limit is None or not self.finished:
            return self.reached()
        mean = self.finished_cost / self.finished
        committed = sum(max(0.0, mean - self.prices.of(tokens)) for tokens in self._running.values())
        return self._reason if self.spent + committed + mean > self.limit else None

    @property
    def _reason(self) -> str:
        return f"the cost limit of {self.limit:g}: {self.spent:.4g} is spent; to go on give a higher --cost-limit"
