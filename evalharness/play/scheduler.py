"""Decide which episode starts next and in which environment, and retry episodes after infrastructure failures."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from evalharness.base.errors import InfrastructureError, first_error
from evalharness.base.grouping import group_by_key
from evalharness.base.machine import usable_cores
from evalharness.envs.base import MAX_TURNS, Task
from evalharness.models.slots import Slots
from evalharness.models.tries import AbortedError, Tries
from evalharness.play.workers.pool import BUSY, EnvironmentPool
from evalharness.play.workers.process import RemoteEnvironment, WorkerStartError, despite_others
from evalharness.records.episode import Episode

_LOOK_EVERY = 2.0
"""Seconds between checks whether a family needs more workers."""


@dataclass(frozen=True)
class PendingEpisode:
    """One episode that is left to play."""

    task: Task
    sample: int
    expected_turns: float = float(MAX_TURNS)
    """Expected number of turns; the default is the turn limit."""

    @property
    def key(self) -> tuple[str, int]:
        """Task id and sample."""
        return self.task.id, self.sample


@dataclass
class _Queue:
    """The episodes of one family that are left. Episodes with the most expected turns come first, then hard tasks. A
    run expects as many turns as the limit allows; `verify` expects the recorded number."""

    jobs: deque[PendingEpisode]
    in_flight: int = 0
    turns_left: float = 0.0
    """Expected turns of the queued episodes and the episodes in flight."""

    @property
    def slot_share(self) -> float:
        """Episodes in flight for each expected turn. The next slot goes to the family with the lowest value."""
        return self.in_flight / max(self.turns_left, 1.0)


@dataclass
class Scheduler:
    """Plays jobs with as many episodes in flight as the slots allow.

    No episode waits for a batch of other episodes. A free slot goes to the family with the fewest slots in proportion
    to its remaining work, so all families end at about the same time. A family with slow or hanging environments gets
    no more than its share of the slots while another family has work.
    """

    pools: Mapping[str, EnvironmentPool]
    play: Callable[[PendingEpisode, RemoteEnvironment], Awaitable[Episode]]
    on_episode: Callable[[Episode], None]
    on_failure: Callable[[PendingEpisode, int, InfrastructureError, bool], None]
    """Called with (job, number of the try from 1, error, whether the episode is given up)."""
    slots: Slots
    tries: int
    cores: int = field(default_factory=usable_cores)
    """Number of cores of all machines on which workers run."""
    policy_alive: Callable[[], str | None] = lambda: None
    """Return why the policy cannot answer any more, such as a dead server; None while it can."""
    stop_reason: Callable[[], str | None] = lambda: None
    """Return why no further episode may begin and the episodes in flight must stop; None if the run goes on."""
    _queues: dict[str, _Queue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._tries = Tries(
            self.tries,
            self.on_failure,
            lambda: self.policy_alive(),
            lambda: self.slots.limit,
            lambda: self.slots.replies,
        )

    async def run(self, jobs: Sequence[PendingEpisode]) -> None:
        """Play all jobs. If AbortedError, StoreError or UserError is raised, all episodes in flight are cancelled."""
        self._queues = _queues(jobs)
        try:
            async with asyncio.TaskGroup() as group:
                watcher = group.create_task(self._look_after_pools())
                while any(queue.jobs or queue.in_flight for queue in self._queues.values()):
                    self._grow_slow_families()
                    while (family := self._next_family()) is not None:
                        self._start(family, group)
                    in_flight = any(queue.in_flight for queue in self._queues.values())
                    if not in_flight and (reason := self.stop_reason()) is not None:
                        raise AbortedError(reason)
                    await self.slots.change()
                watcher.cancel()
        except BaseExceptionGroup as errors:
            raise first_error(errors) from None

    def _next_family(self) -> str | None:
        """Return the family whose next episode starts now; None if no slot is free or no episode is left."""
        if not self.slots.has_room or self.stop_reason() is not None:
            return None
        waiting = {family: queue for family, queue in self._queues.items() if queue.jobs}
        ready = [f for f, queue in waiting.items() if queue.in_flight < self.pools[f].capacity]
        if not ready:
            # Slots are free but no environment is: add a worker where it has the most turns to play.
            behind = sorted(waiting, key=lambda f: (-waiting[f].turns_left / self.pools[f].size, f))
            ready = [next((f for f in behind if self.pools[f].grow()), "")]
        return min(
            filter(None, ready),
            key=lambda f: (waiting[f].slot_share, -waiting[f].turns_left, f),
            default=None,
        )

    def _grow_slow_families(self) -> None:
        """Add workers to families whose episodes would take more than half of the run's time. Do nothing if the user
        set the number of episodes in flight."""
        if self.slots.pinned:
            return
        whole = sum(queue.turns_left for queue in self._queues.values()) / self.slots.limit
        for family, queue in self._queues.items():
            pool = self.pools[family]
            while (
                len(queue.jobs) + queue.in_flight > pool.capacity
                and queue.turns_left / pool.capacity > whole / 2
                and pool.grow()
            ):
                pass

    def _start(self, family: str, group: asyncio.TaskGroup) -> None:
        queue = self._queues[family]
        job = queue.jobs.popleft()
        queue.in_flight += 1
        self.slots.begin_episode()
        group.create_task(self._one(job, queue))

    async def _one(self, job: PendingEpisode, queue: _Queue) -> None:
        try:
            await self._finish(job, self.pools[job.task.family])
        finally:
            queue.in_flight -= 1
            queue.turns_left -= job.expected_turns
            self.slots.end_episode()

    async def _finish(self, job: PendingEpisode, pool: EnvironmentPool) -> None:
        """Play one job. Repeat it after infrastructure failures, until it is finished or given up."""

        async def once() -> Episode:
            async with pool.environment() as environment:
                return await self.play(job, environment)

        def hopeless(error: InfrastructureError) -> str | None:
            return str(error) if isinstance(error, WorkerStartError) and not pool.has_started else None

        if (episode := await self._tries.of(job, lambda: despite_others(once), hopeless)) is not None:
            self.on_episode(episode)

    async def _look_after_pools(self) -> None:
        """Check every two seconds whether to add a worker to a family. Add one if the family's workers are busy and a
        core is idle. Also add one if the family's environments are all in use, the model has free slots, and half of
        the cores are idle."""
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                await asyncio.sleep(_LOOK_EVERY)
                if (reason := self.stop_reason()) is not None:
                    raise AbortedError(reason)
                at_work = {family: pool.look() for family, pool in self.pools.items()}
                used = sum(share * len(self.pools[family].workers) for family, share in at_work.items())
                for family, queue in self._queues.items():
                    pool = self.pools[family]
                    overworked = at_work[family] > BUSY and used < self.cores
                    held_up = (
                        queue.in_flight >= pool.capacity and used < self.cores / 2 and self.slots.has_room
                    )
                    if queue.jobs and (
                        (overworked and pool.grow()) or (held_up and pool.grow(cores_idle=True))
                    ):
                        self.slots.wake()


def _queues(jobs: Sequence[PendingEpisode]) -> dict[str, _Queue]:
    queues = {}
    for family, family_jobs in sorted(group_by_key((job.task.family, job) for job in jobs).items()):
        # The longest jobs first; of equally long jobs the hard tasks first, then in the order of the task table.
        longest_first = sorted(
            family_jobs, key=lambda job: (-job.expected_turns, job.task.difficulty != "hard")
        )
        queues[family] = _Queue(
            deque(longest_first), turns_left=sum(job.expected_turns for job in family_jobs)
        )
    return queues
