"""The simulators of all sessions: one pool of workers for each family, which grows with the sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from evalharness.base.machine import usable_cores
from evalharness.envs.base import EnvSpec
from evalharness.play.workers.pool import EnvironmentPool
from evalharness.play.workers.process import RemoteEnvironment

WAIT_S = 45.0
"""Seconds that a reset waits for a simulator; OpenEnv's client waits 60 s for an answer."""


class BusyError(Exception):
    """No simulator was free in time: memory is short, or sessions hold all of them."""


class Pools:
    """The pools of all families. A session holds an environment from its reset to the episode's end."""

    def __init__(self, specs: Iterable[EnvSpec], sessions: int, data: Path | None) -> None:
        cores = usable_cores()
        self._wanted: dict[str, int] = {}
        """Family -> environments that are held or waited for."""
        self._pools: dict[str, EnvironmentPool] = {}
        for spec in specs:
            # Every session may hold an environment of the same family, and a trainer steps a batch in lockstep: with
            # fewer environments the last episodes of a batch would wait forever for the first.
            most = max(-(-sessions // spec.worker.envs_per_worker), min(cores, sessions))
            self._pools[spec.family] = EnvironmentPool(spec, data, most, size=min(cores, most))
            self._wanted[spec.family] = 0

    @asynccontextmanager
    async def environment(self, family: str) -> AsyncIterator[RemoteEnvironment]:
        """Hold an environment of the family. Raises BusyError."""
        pool = self._pools[family]
        self._wanted[family] += 1
        try:
            if self._wanted[family] > pool.capacity:
                pool.grow()
            async with AsyncExitStack() as stack:
                try:
                    async with asyncio.timeout(WAIT_S):
                        environment = await stack.enter_async_context(pool.environment())
                except TimeoutError:
                    raise BusyError(
                        f"no {pool.spec.title} simulator was free within {WAIT_S:.0f} s; try again"
                    ) from None
                yield environment
        finally:
            self._wanted[family] -= 1

    def status(self) -> dict[str, dict[str, int]]:
        """Return for each family the number of running workers, and of workers that died, hung or raised an error."""
        return {
            family: {"workers": len(pool.workers), "lost_workers": pool.lost_workers}
            for family, pool in self._pools.items()
        }

    async def warm_up(self) -> None:
        """Start the first workers of every family before the first request."""
        await asyncio.gather(*(pool.warm_up() for pool in self._pools.values()))

    async def close(self) -> None:
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))
