"""Manage the workers of one family: their number, which worker plays an episode, and their replacement."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

from evalharness.base.timing import FamilyTimes
from evalharness.envs.base import EnvSpec
from evalharness.play.workers.process import RemoteEnvironment, WorkerProcess

_CHECK_EVERY = 5.0
"""Seconds between checks of a worker's memory: reading a process tree takes milliseconds."""
_GROWTH_FACTOR = 1.5
_GROWTH_BYTES = 300 * 2**20
"""A worker is replaced when its memory exceeds 1.5 times `warm_bytes` plus this many bytes."""
BUSY = 0.7
"""If a family's workers are busy for a larger share of the time than this, another worker is started."""
_SPARE_BYTES = 512 * 2**20
_UNKNOWN_BYTES = 400 * 2**20
"""Assumed memory of a worker before the first measurement. The largest workers, Java processes, have 100 to 800 MB."""


def available_bytes() -> int:
    """Return the bytes of memory that are available without swapping."""
    import psutil

    return int(psutil.virtual_memory().available)


@dataclass
class _PooledWorker:
    """A worker, and what the pool records about it."""

    worker: WorkerProcess
    free: list[int]
    """Numbers of the worker's environments that play no episode; the last number is used next."""
    episodes: int = 0
    warm_bytes: int | None = None
    """Resident bytes of the worker after its first `per_worker` episodes."""
    checked: float = field(default_factory=time.monotonic)
    retiring: bool = False
    cpu_s: float = 0.0


@dataclass
class EnvironmentPool:
    """Gives each episode an environment, and replaces broken workers. The pool has at most `size` workers. `grow`
    raises `size` up to `busy_workers`; if cores are idle, up to `max_workers`."""

    spec: EnvSpec
    data: Path | None
    max_workers: int
    log: Path | None = None
    size: int = 0
    """Current maximum number of workers; 0 means `max_workers`."""
    busy_workers: int = 0
    """Limit of `size` while all cores are busy; 0 means `max_workers`."""
    episodes_per_worker: int | None = None
    """Episodes in flight in one worker; the default is `envs_per_worker`."""
    make_worker: Callable[[EnvSpec, Path | None, Path | None], WorkerProcess] = WorkerProcess
    times: FamilyTimes = field(default_factory=FamilyTimes)
    repeats_fatal_actions: bool = False
    """Whether a new worker repeats an action that ended its worker (`RemoteEnvironment.step`)."""
    recycled: int = 0
    """Workers replaced because their memory had grown."""

    def __post_init__(self) -> None:
        self.size = min(self.size or self.max_workers, self.max_workers)
        self.busy_workers = min(self.busy_workers or self.max_workers, self.max_workers)
        self.per_worker = min(
            self.episodes_per_worker or self.spec.worker.envs_per_worker, self.spec.worker.envs_per_worker
        )
        self._pooled: list[_PooledWorker] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._cpu_gone = 0.0
        self._lost_before = 0
        self._started = False
        self._largest = 0
        self._last_look = (time.monotonic(), 0.0)
        self._changed = asyncio.Condition()

    @property
    def capacity(self) -> int:
        """Maximum number of the family's episodes in flight with `size` workers."""
        return self.size * self.per_worker

    @property
    def most(self) -> int:
        """Maximum number of the family's episodes in flight if `size` grows to `max_workers`."""
        return self.max_workers * self.per_worker

    @property
    def workers(self) -> list[WorkerProcess]:
        return [pooled.worker for pooled in self._pooled]

    @property
    def has_started(self) -> bool:
        """Whether any worker has started so far."""
        return self._started or any(pooled.worker.answered for pooled in self._pooled)

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all workers at their last measurement."""
        return self._cpu_gone + sum(pooled.cpu_s for pooled in self._pooled)

    @property
    def lost_workers(self) -> int:
        """Number of workers that died, hung or raised an error."""
        return self._lost_before + sum(pooled.worker.lost is not None for pooled in self._pooled)

    def grow(self, *, cores_idle: bool = False) -> bool:
        """Allow one more worker if there is enough memory; return whether it is allowed."""
        if self.size >= (self.max_workers if cores_idle else self.busy_workers):
            return False
        if available_bytes() < 1.2 * (self._largest or _UNKNOWN_BYTES) + _SPARE_BYTES:
            return False
        self.size += 1
        return True

    def look(self) -> float:
        """Return the share of the time since the last call in which the family's workers computed, 0..1."""
        then, before = self._last_look
        now, busy = time.monotonic(), self.times.environment_s
        self._last_look = (now, busy)
        return (busy - before) / max(now - then, 1e-6) / max(len(self._pooled), 1)

    @contextlib.asynccontextmanager
    async def environment(self) -> AsyncIterator[RemoteEnvironment]:
        """Wait for a free environment and reserve it for one episode."""
        async with self._changed:
            while (pooled := self._pick()) is None:
                await self._changed.wait()
            slot = pooled.free.pop()
        environment = RemoteEnvironment(
            pooled.worker,
            slot,
            self.times,
            make_worker=self._new_worker if self.repeats_fatal_actions else None,
        )
        try:
            yield environment
        finally:
            await environment.close()
            pooled.free.append(slot)
            pooled.episodes += 1
            self._check(pooled)
            async with self._changed:
                self._changed.notify()

    def _pick(self) -> _PooledWorker | None:
        """Return the worker with the most free environments. If no worker is completely free, start a new one up to
        `size`. Return None if no environment is free."""
        for pooled in [pooled for pooled in self._pooled if pooled.worker.broken]:
            self._drop(pooled)
        candidates = [pooled for pooled in self._pooled if not pooled.retiring]
        best = max(candidates, key=lambda pooled: len(pooled.free), default=None)
        full = len(candidates) >= self.size
        if best is not None and (len(best.free) == self.per_worker or (full and best.free)):
            return best
        return None if full else self._add()

    def _add(self) -> _PooledWorker:
        self._pooled.append(_PooledWorker(self._new_worker(), free=[*range(self.per_worker)][::-1]))
        return self._pooled[-1]

    def _new_worker(self) -> WorkerProcess:
        return self.make_worker(self.spec, self.data, self.log)

    def _drop(self, pooled: _PooledWorker) -> None:
        self._pooled.remove(pooled)
        self._lost_before += pooled.worker.lost is not None
        self._cpu_gone += pooled.cpu_s
        self._started = self._started or pooled.worker.answered
        task = asyncio.ensure_future(pooled.worker.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _check(self, pooled: _PooledWorker) -> None:
        """Measure a worker's memory at intervals. If it has grown, replace the worker after its episodes."""
        if pooled.worker.broken or pooled not in self._pooled:
            return
        if not pooled.retiring and time.monotonic() - pooled.checked >= _CHECK_EVERY:
            self._weigh(pooled)
        if pooled.retiring and len(pooled.free) == self.per_worker:
            self._sample_cpu(pooled)
            self._drop(pooled)

    def _weigh(self, pooled: _PooledWorker) -> None:
        pooled.checked = time.monotonic()
        size = self._sample_cpu(pooled)
        if size is None:
            return
        self._largest = max(self._largest, size)
        if pooled.warm_bytes is None:
            if pooled.episodes >= self.per_worker:
                pooled.warm_bytes = size
        elif size > _GROWTH_FACTOR * pooled.warm_bytes + _GROWTH_BYTES:
            pooled.retiring = True
            self.recycled += 1

    @staticmethod
    def _sample_cpu(pooled: _PooledWorker) -> int | None:
        """Record the CPU time and return the resident bytes."""
        usage = pooled.worker.usage()
        if usage.cpu_s is not None:
            pooled.cpu_s = max(pooled.cpu_s, usage.cpu_s)
        return usage.rss_bytes

    async def warm_up(self) -> None:
        """Start the allowed number of workers and import their modules before the first episode needs them."""
        while len(self._pooled) < self.size:
            self._add()
        # If a worker does not start, the first episode that needs it gets the error.
        calls = (pooled.worker.call(0, "warm", self.spec.worker.reset_timeout) for pooled in self._pooled)
        await asyncio.gather(*calls, return_exceptions=True)

    async def close(self) -> None:
        for pooled in self._pooled:
            self._sample_cpu(pooled)
        await asyncio.gather(*(pooled.worker.close() for pooled in self._pooled), *self._closing)
