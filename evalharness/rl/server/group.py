"""Many episodes on one connection: a group, with indices from 0. A client of single episodes has index 0 alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from evalharness.rl.server.gate import Gate
from evalharness.rl.server.messages import ResetManyRequest, StepManyRequest
from evalharness.rl.server.service import ClientSession

_UNDER_WAY = 64
"""Calls of one message that are under way at the same time: they keep all workers busy. A simulator's call is carried
out to its end, so a client that vanishes is waited for by these and not by thousands."""

Outcome = dict[str, Any] | Exception
"""Of one episode: an observation, or why there is none. None of a group is lost silently."""


class UnknownIndexError(Exception):
    """A message names an index that the group does not have, one twice, or not as many as it has entries."""


class GroupTooLargeError(Exception):
    """It would never fit."""


class Group:
    def __init__(self, open_session: Callable[[], ClientSession], gate: Gate) -> None:
        self._open_session, self._gate = open_session, gate
        self._sessions = [open_session()]
        self._claimed = 0
        """Sessions at the gate beyond the connection's own."""

    @property
    def first(self) -> ClientSession:
        return self._sessions[0]

    async def reset(self, asked: ResetManyRequest) -> list[Outcome]:
        """Raises FullError, GroupTooLargeError, UnknownIndexError; nothing has been done then."""
        if asked.places is None:
            await self._resize(len(asked.episodes))
        pairs = zip(self._named(asked.places, len(asked.episodes)), asked.episodes, strict=True)
        return await _outcomes([partial(session.reset, episode) for session, episode in pairs])

    async def step(self, asked: StepManyRequest) -> list[Outcome]:
        """Raises UnknownIndexError; nothing has been done then."""
        pairs = zip(self._named(asked.places, len(asked.replies)), asked.replies, strict=True)
        return await _outcomes([partial(session.step, reply) for session, reply in pairs])

    def states(self) -> list[dict[str, Any]]:
        return [session.state() for session in self._sessions]

    async def close(self) -> None:
        """Give all simulators back, and what the group has beyond its connection's own session at the gate."""
        await self._keep(0)

    async def _resize(self, count: int) -> None:
        """Raises FullError, GroupTooLargeError."""
        if count > self._gate.sessions:
            raise GroupTooLargeError(f"{count} episodes, but {self._gate.sessions} sessions (--sessions)")
        if (more := count - len(self._sessions)) > 0:
            self._gate.claim(more)
            self._claimed += more
            self._sessions += [self._open_session() for _ in range(more)]
        else:
            await self._keep(count)

    async def _keep(self, count: int) -> None:
        gone = self._sessions[count:]
        del self._sessions[count:]
        await asyncio.gather(*(session.close() for session in gone), return_exceptions=True)
        too_many = self._claimed - max(len(self._sessions) - 1, 0)
        self._claimed -= too_many
        await self._gate.give_back(too_many)

    def _named(self, places: Sequence[int] | None, count: int) -> list[ClientSession]:
        indices = range(len(self._sessions)) if places is None else places
        if len(indices) != count:
            raise UnknownIndexError(f"{count} entries for {len(indices)} episodes: give one for each")
        if len(set(indices)) < count:
            raise UnknownIndexError("an episode is named twice")
        if max(indices) >= len(self._sessions):
            raise UnknownIndexError(f"no episode {max(indices)}: the group has 0-{len(self._sessions) - 1}")
        return [self._sessions[i] for i in indices]


async def _outcomes(calls: Sequence[Callable[[], Awaitable[dict[str, Any]]]]) -> list[Outcome]:
    """What came of each call, in order."""
    under_way = asyncio.Semaphore(_UNDER_WAY)

    async def outcome(call: Callable[[], Awaitable[dict[str, Any]]]) -> Outcome:
        async with under_way:
            try:
                return await call()
            except Exception as error:
                return error

    return list(await asyncio.gather(*map(outcome, calls)))
