"""Limit the number of sessions (episodes at the same time) of all clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

WAIT_S = 5.0
"""Seconds that a client waits for a free session; OpenEnv's client gives up after 10."""


class FullError(Exception):
    """All sessions are taken, and the queue is full or this client has waited too long."""


class Gate:
    def __init__(self, sessions: int, waiting: int) -> None:
        self.sessions, self.most_waiting = sessions, waiting
        self.open = 0
        self.waiting = 0
        self.refused = 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[None]:
        """Hold one session until the context ends. Raises FullError."""
        await self._enter()
        try:
            yield
        finally:
            await self.give_back(1)

    def claim(self, count: int) -> None:
        """Take `count` more sessions for a connected client. Raises FullError if fewer are free: a client that holds a
        part of its group while it waits for the other part would block other clients."""
        free = self.sessions - self.open
        if count > free:
            self._refuse(f"{count} more episodes, but only {free} of {self.sessions} sessions are free")
        self.open += count

    async def give_back(self, count: int) -> None:
        self.open -= count
        async with self._changed:
            self._changed.notify_all()

    async def _enter(self) -> None:
        if self.open >= self.sessions:
            if self.waiting >= self.most_waiting:
                self._refuse(
                    f"all {self.sessions} sessions are taken and {self.waiting} clients wait for one"
                )
            self.waiting += 1
            try:
                async with asyncio.timeout(WAIT_S), self._changed:
                    await self._changed.wait_for(lambda: self.open < self.sessions)
                    self.open += 1
                    return
            except TimeoutError:
                self._refuse(f"all {self.sessions} sessions are taken; none ended within {WAIT_S:.0f} s")
            finally:
                self.waiting -= 1
        self.open += 1

    def _refuse(self, why: str) -> None:
        self.refused += 1
        raise FullError(why)
