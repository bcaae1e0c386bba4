"""Which episode runs where and when; what happens when one breaks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from envs.base import Task
from evalharness.episode import Episode
from evalharness.errors import InfrastructureError
from evalharness.policy.endpoint import EndpointError
from evalharness.store import StoreError
from evalharness.workers import EnvironmentPool, RemoteEnvironment


@dataclass(frozen=True)
class Job:
    """One episode that is owed."""

    task: Task
    sample: int


class RunAbortedError(InfrastructureError):
    """The policy is gone for every episode: going on would only burn their tries."""


@dataclass
class Scheduler:
    """Plays jobs with at most `concurrency` episodes in flight.

    There is no barrier between turns, episodes or families: a family's lanes draw from its queue as its
    environments come free, and all lanes share the slots of the policy in the order in which they ask.
    """

    pools: Mapping[str, EnvironmentPool]
    play: Callable[[Job, RemoteEnvironment], Awaitable[Episode]]
    on_episode: Callable[[Episode], None]
    on_failure: Callable[[Job, int, InfrastructureError, bool], None]
    """(job, attempt from 1, error, whether the episode is given up)."""
    concurrency: int
    attempts: int
    policy_alive: Callable[[], str | None] = lambda: None
    """None, or why the policy can never answer again."""

    def __post_init__(self) -> None:
        self._policy_slots = asyncio.Semaphore(self.concurrency)
        self._policy_failures = 0
        """Episodes in a row that failed for the policy's sake."""

    async def run(self, jobs: Sequence[Job]) -> None:
        """Raises RunAbortedError, StoreError or UserError; then no other episode goes on."""
        queues: dict[str, deque[Job]] = {}
        for job in jobs:
            queues.setdefault(job.task.family, deque()).append(job)
        # The family with the most work left starts first, so that it does not end alone.
        order = sorted(queues, key=lambda f: (-len(queues[f]) * self.pools[f].spec.cost, f))
        try:
            async with asyncio.TaskGroup() as group:
                for family in order:
                    lanes = min(self.pools[family].capacity, self.concurrency, len(queues[family]))
                    for _ in range(lanes):
                        group.create_task(self._lane(self.pools[family], queues[family]))
        except BaseExceptionGroup as errors:
            raise _first(errors) from None

    async def _lane(self, pool: EnvironmentPool, queue: deque[Job]) -> None:
        while queue:
            async with self._policy_slots:
                if not queue:
                    return
                await self._finish(queue.popleft(), pool)

    async def _finish(self, job: Job, pool: EnvironmentPool) -> None:
        """Play one job, starting it over when infrastructure fails, until it is done or given up."""
        for attempt in range(1, self.attempts + 1):
            try:
                async with pool.environment() as environment:
                    episode = await self.play(job, environment)
            except StoreError:
                raise
            except InfrastructureError as error:
                reason = self.policy_alive()
                final = attempt == self.attempts or reason is not None
                self.on_failure(job, attempt, error, final)
                if reason is not None:
                    raise RunAbortedError(reason) from None
                if isinstance(error, EndpointError):
                    self._policy_failures += 1
                    if self._policy_failures >= max(self.attempts, self.concurrency):
                        raise RunAbortedError(f"the model's server has stopped answering: {error}") from None
            else:
                self._policy_failures = 0
                self.on_episode(episode)
                return


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first leaf: the one that made the others stop."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
