"""The workers of one family: how many there are, which one an episode gets, and when one is replaced."""

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
"""Seconds between looks at a worker's memory: a look at a process tree costs milliseconds."""
_GROWTH_FACTOR = 1.5
_GROWTH_BYTES = 300 * 2**20
"""A worker is replaced when its memory exceeds 1.5 times `warm_bytes` plus this many bytes."""
BUSY = 0.7
"""Share of the time that a family's workers are at work from which one more is worth its start."""
_SPARE_BYTES = 512 * 2**20
_UNKNOWN_BYTES = 400 * 2**20
"""Taken for a worker's size before one has been weighed; the largest, a Java process, has 100 to 800 MB."""


def available_bytes() -> int:
    """Bytes of memory that are available without swapping."""
    import psutil

    return int(psutil.virtual_memory().available)


@dataclass
class _Held:
    """What the pool knows of one worker."""

    worker: WorkerProcess
    free: list[int]
    """Numbers of its environments that have no episode; the last is given out next."""
    episodes: int = 0
    warm_bytes: int | None = None
    """Resident bytes, first read after `per_worker` episodes."""
    checked: float = field(default_factory=time.monotonic)
    retiring: bool = False
    cpu_s: float = 0.0


@dataclass
class EnvironmentPool:
    """Gives every episode an environment. A worker that broke is replaced when it is next asked for.

    Starts with `size` workers at most and may be grown to `max_workers`, while the cores are at work to `busy_workers`.
    """

    spec: EnvSpec
    data: Path | None
    max_workers: int
    log: Path | None = None
    size: int = 0
    """Workers allowed now; 0 means `max_workers`."""
    busy_workers: int = 0
    """0 means `max_workers`."""
    episodes_per_worker: int | None = None
    """Episodes in flight in one worker; default: as many environments as it may hold."""
    make_worker: Callable[[EnvSpec, Path | None, Path | None], WorkerProcess] = WorkerProcess
    times: FamilyTimes = field(default_factory=FamilyTimes)
    repeats_fatal_actions: bool = False
    """An action that ends its worker is repeated in another one, to know whether the action did it
    (`RemoteEnvironment.step`)."""
    recycled: int = 0
    """Workers replaced because their memory had grown."""

    def __post_init__(self) -> None:
        self.size = min(self.size or self.max_workers, self.max_workers)
        self.busy_workers = min(self.busy_workers or self.max_workers, self.max_workers)
        self.per_worker = min(
            self.episodes_per_worker or self.spec.worker.envs_per_worker, self.spec.worker.envs_per_worker
        )
        self._held: list[_Held] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._cpu_gone = 0.0
        self._lost_before = 0
        self._started = False
        self._largest = 0
        self._last_look = (time.monotonic(), 0.0)
        self._changed = asyncio.Condition()

    @property
    def capacity(self) -> int:
        """How many episodes of the family can be in flight with the workers allowed now."""
        return self.size * self.per_worker

    @property
    def most(self) -> int:
        """`capacity` when grown as far as it goes."""
        return self.max_workers * self.per_worker

    @property
    def workers(self) -> list[WorkerProcess]:
        return [held.worker for held in self._held]

    @property
    def has_started(self) -> bool:
        """Whether any of the workers has started so far."""
        return self._started or any(held.worker.answered for held in self._held)

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all workers so far, as last looked at."""
        return self._cpu_gone + sum(held.cpu_s for held in self._held)

    @property
    def lost_workers(self) -> int:
        """Number of workers that died, hung or raised."""
        return self._lost_before + sum(held.worker.lost is not None for held in self._held)

    def grow(self, *, cores_idle: bool = False) -> bool:
        """Allow one more worker, where the memory is there for it."""
        if self.size >= (self.max_workers if cores_idle else self.busy_workers):
            return False
        if available_bytes() < 1.2 * (self._largest or _UNKNOWN_BYTES) + _SPARE_BYTES:
            return False
        self.size += 1
        return True

    def look(self) -> float:
        """Share of the time since the last look that the workers were at work, 0..1."""
        then, before = self._last_look
        now, busy = time.monotonic(), self.times.environment_s
        self._last_look = (now, busy)
        return (busy - before) / max(now - then, 1e-6) / max(len(self._held), 1)

    @contextlib.asynccontextmanager
    async def environment(self) -> AsyncIterator[RemoteEnvironment]:
        """Wait for a free environment and hold it for one episode."""
        async with self._changed:
            while (held := self._pick()) is None:
                await self._changed.wait()
            slot = held.free.pop()
        environment = RemoteEnvironment(
            held.worker,
            slot,
            self.times,
            make_worker=self._new_worker if self.repeats_fatal_actions else None,
        )
        try:
            yield environment
        finally:
            await environment.close()
            held.free.append(slot)
            held.episodes += 1
            self._check(held)
            async with self._changed:
                self._changed.notify()

    def _pick(self) -> _Held | None:
        """The least busy worker; a new one while there is room and every one is at work; None when all is full."""
        for held in [held for held in self._held if held.worker.broken]:
            self._drop(held)
        staying = [held for held in self._held if not held.retiring]
        best = max(staying, key=lambda held: len(held.free), default=None)
        full = len(staying) >= self.size
        if best is not None and (len(best.free) == self.per_worker or (full and best.free)):
            return best
        return None if full else self._add()

    def _add(self) -> _Held:
        self._held.append(_Held(self._new_worker(), free=[*range(self.per_worker)][::-1]))
        return self._held[-1]

    def _new_worker(self) -> WorkerProcess:
        return self.make_worker(self.spec, self.data, self.log)

    def _drop(self, held: _Held) -> None:
        self._held.remove(held)
        self._lost_before += held.worker.lost is not None
        self._cpu_gone += held.cpu_s
        self._started = self._started or held.worker.answered
        task = asyncio.ensure_future(held.worker.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _check(self, held: _Held) -> None:
        """Weigh a worker now and then; let one that has grown finish its episodes and go."""
        if held.worker.broken or held not in self._held:
            return
        if not held.retiring and time.monotonic() - held.checked >= _CHECK_EVERY:
            self._weigh(held)
        if held.retiring and len(held.free) == self.per_worker:
            self._sample_cpu(held)
            self._drop(held)

    def _weigh(self, held: _Held) -> None:
        held.checked = time.monotonic()
        size = self._sample_cpu(held)
        if size is None:
            return
        self._largest = max(self._largest, size)
        if held.warm_bytes is None:
            if held.episodes >= self.per_worker:
                held.warm_bytes = size
        elif size > _GROWTH_FACTOR * held.warm_bytes + _GROWTH_BYTES:
            held.retiring = True
            self.recycled += 1

    @staticmethod
    def _sample_cpu(held: _Held) -> int | None:
        """Return the resident bytes and record the CPU time."""
        usage = held.worker.usage()
        if usage.cpu_s is not None:
            held.cpu_s = max(held.cpu_s, usage.cpu_s)
        return usage.rss_bytes

    async def warm_up(self) -> None:
        """Start as many workers as are allowed now, all their imports included, before any episode asks for them."""
        while len(self._held) < self.size:
            self._add()
        # What does not start is reported to the first episode that needs it.
        calls = (held.worker.call(0, "warm", self.spec.worker.reset_timeout) for held in self._held)
        await asyncio.gather(*calls, return_exceptions=True)

    async def close(self) -> None:
        for held in self._held:
            self._sample_cpu(held)
        await asyncio.gather(*(held.worker.close() for held in self._held), *self._closing)
