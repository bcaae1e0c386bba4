"""Simulators for all sessions: a pool of worker processes for each family, which grows when more sessions need it."""

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
    """No simulator was free in time: all are in use, or memory is too small to start more."""


class Pools:
    """A pool of environments for each family. A session holds an environment from the reset to the end of the
    episode."""

    def __init__(self, specs: Iterable[EnvSpec], sessions: int, data: Path | None) -> None:
        cores = usable_cores()
        self._wanted: dict[str, int] = {}
        """Family -> number of sessions that hold an environment or wait for one."""
        self._pools: dict[str, EnvironmentPool] = {}
        for spec in specs:
            # All sessions may need an environment of one family. With fewer environments than sessions, a batch that a
            # trainer steps in lockstep would never finish: its last episodes would wait for the first ones.
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
        """Return the number of running workers of each family, and of workers that died, hung or raised an error."""
        return {
            family: {"workers": len(pool.workers), "lost_workers": pool.lost_workers}
            for family, pool in self._pools.items()
        }

    async def warm_up(self) -> None:
        """Start the first workers of every family before the first request."""
        await asyncio.gather(*(pool.warm_up() for pool in self._pools.values()))

    async def close(self) -> None:
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))
