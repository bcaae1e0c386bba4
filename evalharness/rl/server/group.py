"""Play a group of episodes over one connection. A client that plays single episodes has a group of one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from evalharness.rl.server.gate import Gate
from evalharness.rl.server.messages import ResetManyRequest, StepManyRequest
from evalharness.rl.server.service import ClientSession

_UNDER_WAY = 64
"""Number of simulator calls of one message that run at the same time. They keep all workers busy. A running call cannot
be cancelled, so closing a lost connection waits for these calls only, not for thousands."""

EpisodeResult = dict[str, Any] | Exception
"""An episode's observation, or the exception of its call."""


class UnknownIndexError(Exception):
    """A message names an index that the group does not have, repeats one, or has a wrong number of entries."""


class GroupTooLargeError(Exception):
    """The group is larger than the server's number of sessions."""


class Group:
    def __init__(self, open_session: Callable[[], ClientSession], gate: Gate) -> None:
        self._open_session, self._gate = open_session, gate
        self._sessions = [open_session()]
        self._claimed = 0
        """Number of sessions taken at the gate for the group's episodes after the first one."""

    @property
    def first(self) -> ClientSession:
        return self._sessions[0]

    async def reset(self, asked: ResetManyRequest) -> list[EpisodeResult]:
        """Begin episodes. Raises FullError, GroupTooLargeError, UnknownIndexError before anything is done."""
        if asked.places is None:
            await self._resize(len(asked.episodes))
        pairs = zip(self._select_sessions(asked.places, len(asked.episodes)), asked.episodes, strict=True)
        return await _run_calls([partial(session.reset, episode) for session, episode in pairs])

    async def step(self, asked: StepManyRequest) -> list[EpisodeResult]:
        """Send replies. Raises UnknownIndexError before anything is done."""
        pairs = zip(self._select_sessions(asked.places, len(asked.replies)), asked.replies, strict=True)
        return await _run_calls([partial(session.step, reply) for session, reply in pairs])

    def states(self) -> list[dict[str, Any]]:
        return [session.state() for session in self._sessions]

    async def close(self) -> None:
        """Return all simulators to their pools, and the group's sessions to the gate."""
        await self._keep(0)

    async def _resize(self, count: int) -> None:
        """Change the number of episodes. Raises FullError, GroupTooLargeError."""
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

    def _select_sessions(self, places: Sequence[int] | None, count: int) -> list[ClientSession]:
        indices = range(len(self._sessions)) if places is None else places
        if len(indices) != count:
            raise UnknownIndexError(f"{count} entries for {len(indices)} episodes: give one for each")
        if len(set(indices)) < count:
            raise UnknownIndexError("an episode is named twice")
        if max(indices) >= len(self._sessions):
            raise UnknownIndexError(f"no episode {max(indices)}: the group has 0-{len(self._sessions) - 1}")
        return [self._sessions[i] for i in indices]


async def _run_calls(calls: Sequence[Callable[[], Awaitable[dict[str, Any]]]]) -> list[EpisodeResult]:
    """Return the result of each call, in order."""
    under_way = asyncio.Semaphore(_UNDER_WAY)

    async def outcome(call: Callable[[], Awaitable[dict[str, Any]]]) -> EpisodeResult:
        async with under_way:
            try:
                return await call()
            except Exception as error:
                return error

    return list(await asyncio.gather(*map(outcome, calls)))
