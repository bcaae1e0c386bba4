"""Order, fairness, pools and recycling, with real worker processes of the Compass environment."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from command_line import EXAMPLE

from evalharness.base.errors import InfrastructureError
from evalharness.envs.base import EnvSpec, Task
from evalharness.models.base import PolicyError
from evalharness.models.slots import Slots
from evalharness.models.tries import AbortedError
from evalharness.play.scheduler import PendingEpisode, Scheduler
from evalharness.play.sizing import pool_sizes
from evalharness.play.workers.pool import EnvironmentPool
from evalharness.play.workers.process import RemoteEnvironment, Usage, WorkerProcess
from evalharness.records.episode import Episode


@pytest.fixture
def compass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> EnvSpec:
    """The example environment, installed for this process and for its workers."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLE))
    monkeypatch.setenv("COMPASS_FAULTS", str(tmp_path))
    import compass

    yield replace(compass.SPEC, worker=replace(compass.SPEC.worker, envs_per_worker=4))
    del sys.modules["compass"]


def jobs_of(family: str, turns: list[float]) -> list[PendingEpisode]:
    return [
        PendingEpisode(
            Task(f"{family}/open/{i:03d}", family, "open", i, "g", "easy", "k", subgoals=("east",)),
            0,
            expected,
        )
        for i, expected in enumerate(turns)
    ]


class Played:
    """A scheduler over pools of Compass workers that plays episodes of given lengths in event-loop steps."""

    def __init__(self, spec: EnvSpec, families: list[str], limit: int, steps: dict[str, int]) -> None:
        self.started: list[tuple[str, int]] = []
        self.in_flight = dict.fromkeys(families, 0)
        self.most = dict.fromkeys(families, 0)
        self.steps = steps
        self.pools = {f: EnvironmentPool(spec, None, max_workers=4) for f in families}
        self.scheduler = Scheduler(
            pools=self.pools, play=self.play, on_episode=lambda episode: None,
            on_failure=lambda *failure: None, slots=Slots(limit, pinned=True), tries=2,
        )  # fmt: skip

    async def play(self, job: PendingEpisode, environment: RemoteEnvironment) -> Episode:
        family = job.task.family
        self.started.append((family, job.task.index))
        self.in_flight[family] += 1
        self.most[family] = max(self.most[family], self.in_flight[family])
        for _ in range(self.steps[family]):
            await asyncio.sleep(0)
        self.in_flight[family] -= 1
        return None  # type: ignore[return-value]


async def test_the_longest_episodes_start_first(compass: EnvSpec) -> None:
    played = Played(compass, ["a"], limit=1, steps={"a": 1})
    await played.scheduler.run(jobs_of("a", [5, 30, 12, 30, 7]))
    assert [index for _, index in played.started] == [1, 3, 2, 4, 0]


async def test_a_slow_family_cannot_take_the_slots_of_the_rest(compass: EnvSpec) -> None:
    """Family `a` takes a thousand times as long a turn; with half of the work it holds half of the slots at most."""
    played = Played(compass, ["a", "b"], limit=8, steps={"a": 2000, "b": 2})
    await played.scheduler.run([*jobs_of("a", [30.0] * 12), *jobs_of("b", [30.0] * 12)])
    first = played.started[:8]
    assert sorted(family for family, _ in first) == ["a"] * 4 + ["b"] * 4
    last_b = max(i for i, (family, _) in enumerate(played.started) if family == "b")
    assert sum(family == "a" for family, _ in played.started[:last_b]) <= 7


async def test_a_family_with_more_work_gets_more_slots(compass: EnvSpec) -> None:
    played = Played(compass, ["a", "b"], limit=8, steps={"a": 5, "b": 5})
    await played.scheduler.run([*jobs_of("a", [30.0] * 30), *jobs_of("b", [30.0] * 10)])
    assert [family for family, _ in played.started[:8]].count("a") == 6


async def test_every_family_gets_a_slot_however_little_it_has_to_do(compass: EnvSpec) -> None:
    played = Played(compass, ["a", "b"], limit=2, steps={"a": 5, "b": 5})
    await played.scheduler.run([*jobs_of("a", [30.0] * 30), *jobs_of("b", [1.0])])
    assert ("b", 0) in played.started[:2]


async def test_a_family_whose_environments_would_make_it_last_gets_more(
    compass: EnvSpec,
) -> None:
    played = Played(compass, ["a", "b"], limit=32, steps={"a": 3, "b": 3})
    for pool in played.pools.values():
        pool.size = 1  # four environments
    played.scheduler.slots = Slots(32)
    await played.scheduler.run([*jobs_of("a", [30.0] * 40), *jobs_of("b", [30.0] * 4)])
    assert played.pools["a"].size == 4
    assert played.pools["b"].size == 1


async def test_workers_are_started_only_as_needed_and_serve_many_episodes(compass: EnvSpec) -> None:
    pool = EnvironmentPool(compass, None, max_workers=4, size=1)
    try:
        for index in range(6):
            async with pool.environment() as environment:
                await environment.reset(jobs_of("compass", [1.0] * 6)[index].task)
        assert len(pool.workers) == 1
        assert pool.times.environment_s > 0
    finally:
        await pool.close()
    assert pool.cpu_s > 0


async def test_a_worker_whose_memory_grows_is_replaced_between_episodes(
    compass: EnvSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that has grown finishes the episodes it holds, gets no new ones, and is then gone."""
    monkeypatch.setattr("evalharness.play.workers.pool._CHECK_EVERY", 0.0)
    monkeypatch.setattr("evalharness.play.workers.pool._GROWTH_BYTES", 40 * 2**20)
    pool = EnvironmentPool(compass, None, max_workers=1)
    [task] = [job.task for job in jobs_of("compass", [1.0])]
    try:
        for _ in range(compass.worker.envs_per_worker + 1):
            async with pool.environment() as environment:
                await environment.reset(task)
        first = pool.workers[0]
        assert isinstance(first, WorkerProcess)
        async with pool.environment() as staying:
            await staying.reset(task)
            async with pool.environment() as growing:
                await growing.reset(task)
                await growing.step("fault always leak")
            async with pool.environment() as fresh:
                await fresh.reset(task)
                assert fresh.worker is not first
            assert (await staying.step("turn left"))[0].startswith("You face")
        assert pool.recycled == 1
        async with pool.environment() as fresh:
            await fresh.reset(task)
            assert fresh.worker is not first
        while psutil.pid_exists(first.pid or 0):
            await asyncio.sleep(0.1)
    finally:
        await pool.close()


async def test_a_pool_grows_only_while_there_is_memory(
    compass: EnvSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = EnvironmentPool(compass, None, max_workers=3, size=1)
    assert pool.grow()
    monkeypatch.setattr("evalharness.play.workers.pool.available_bytes", lambda: 100)
    assert not pool.grow()
    assert (pool.size, pool.capacity) == (2, 8)


async def test_a_failing_episode_starts_over_and_is_given_up_after_its_tries(compass: EnvSpec) -> None:
    failures: list[tuple[int, bool]] = []

    async def play(job: PendingEpisode, environment: RemoteEnvironment) -> Episode:
        raise InfrastructureError("no")

    scheduler = Scheduler(
        pools={"a": EnvironmentPool(compass, None, 1)}, play=play, on_episode=lambda episode: None,
        on_failure=lambda job, attempt, error, final: failures.append((attempt, final)),
        slots=Slots(4, pinned=True), tries=3,
    )  # fmt: skip
    await scheduler.run(jobs_of("a", [1.0]))
    assert failures == [(1, False), (2, False), (3, True)]


def test_cores_are_shared_out_by_expected_cpu_time() -> None:
    assert pool_sizes({"heavy": 90.0, "light": 10.0}, cores=10) == {"heavy": 9, "light": 1}
    assert pool_sizes({"heavy": 99.0, "light": 1.0}, cores=2) == {"heavy": 2, "light": 1}
    assert pool_sizes({"free": 0.0}, cores=4) == {"free": 1}


class Unweighed(WorkerProcess):
    """A real worker whose memory and CPU time cannot be read."""

    def usage(self) -> Usage:
        return Usage()


@pytest.mark.slow
async def test_a_worker_that_cannot_be_weighed_is_never_replaced_for_its_memory(
    compass: EnvSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same process goes on although it has grown beyond every bound, and its CPU time counts as 0."""
    monkeypatch.setattr("evalharness.play.workers.pool._CHECK_EVERY", 0.0)
    monkeypatch.setattr("evalharness.play.workers.pool._GROWTH_BYTES", 40 * 2**20)
    pool = EnvironmentPool(compass, None, max_workers=1, make_worker=Unweighed)
    [task] = [job.task for job in jobs_of("compass", [1.0])]
    workers = set()
    try:
        for _ in range(compass.worker.envs_per_worker + 2):
            async with pool.environment() as environment:
                await environment.reset(task)
                await environment.step("fault always leak")
                workers.add(pool.workers[0])
    finally:
        await pool.close()
    assert len(workers) == 1
    assert (pool.recycled, pool.cpu_s) == (0, 0.0)


async def test_calls_under_way_are_answered_in_order_each_with_its_own_answer(compass: EnvSpec) -> None:
    """Four episodes in one process call without waiting for each other."""
    pool = EnvironmentPool(compass, None, max_workers=1)
    jobs = jobs_of("compass", [1.0] * 4)

    async def play(job: PendingEpisode) -> list[str]:
        async with pool.environment() as environment:
            await environment.reset(job.task)
            return [(await environment.step(action))[0] for action in ("turn right", "turn up", "turn right")]

    try:
        seen = await asyncio.gather(*(play(job) for job in jobs))
        assert len(pool.workers) == 1
    finally:
        await pool.close()
    assert seen == [["You face east.", "You cannot do that.", "You face south."]] * 4


async def test_an_episode_that_ends_every_worker_costs_its_neighbours_no_try(compass: EnvSpec) -> None:
    """All four are in one process, which the first one ends."""
    given_up: list[int] = []
    finished: list[int] = []

    async def play(job: PendingEpisode, environment: RemoteEnvironment) -> Episode:
        await environment.reset(job.task)
        for _ in range(3):
            await environment.step("turn right")
        if job.task.index == 0:
            _, over, info = await environment.step("fault always raise")
            assert (over, info["halted"]) == (True, True)
            await environment.reset(job.task)  # another trial, in a worker of its own
        for _ in range(30):
            await environment.step("turn right")
        finished.append(job.task.index)
        return None  # type: ignore[return-value]

    pool = EnvironmentPool(compass, None, max_workers=1, repeats_fatal_actions=True)
    scheduler = Scheduler(
        pools={"compass": pool}, play=play, on_episode=lambda episode: None,
        on_failure=lambda job, attempt, error, final: given_up.append(job.task.index) if final else None,
        slots=Slots(4, pinned=True), tries=1,
    )  # fmt: skip
    try:
        await scheduler.run(jobs_of("compass", [1.0] * 4))
    finally:
        await pool.close()
    assert given_up == []
    assert sorted(finished) == [0, 1, 2, 3]


@pytest.mark.slow
async def test_a_hanging_call_takes_down_the_calls_behind_it_with_a_reason_each(compass: EnvSpec) -> None:
    pool = EnvironmentPool(compass, None, max_workers=1, repeats_fatal_actions=True)
    [one, other] = [job.task for job in jobs_of("compass", [1.0] * 2)]
    try:
        async with pool.environment() as hanging, pool.environment() as behind:
            await hanging.reset(one)
            await behind.reset(other)
            outcomes = await asyncio.gather(
                hanging.step("fault always hang"), behind.step("turn left"), return_exceptions=True
            )
        assert "'step' within 3 s" in str(outcomes[0])
        assert "'halted': True" in str(outcomes[0])
        assert "is gone" in str(outcomes[1])
        async with pool.environment() as fresh:
            assert (await fresh.reset(one))[1].startswith("You face")
    finally:
        await pool.close()


@pytest.mark.parametrize(("available", "size"), [(0, 1), (64 << 30, 4)])
async def test_a_pool_grows_only_while_memory_is_available(
    compass: EnvSpec, monkeypatch: pytest.MonkeyPatch, available: int, size: int
) -> None:
    monkeypatch.setattr("evalharness.play.workers.pool.available_bytes", lambda: available)
    pool = EnvironmentPool(compass, None, max_workers=4, size=1)
    while pool.grow():
        pass
    assert pool.size == size


@pytest.mark.parametrize(("share", "workers"), [(0.1, 3), (0.6, 1)])
async def test_idle_cores_get_workers_for_a_family_whose_environments_are_all_taken(
    compass: EnvSpec, monkeypatch: pytest.MonkeyPatch, share: float, workers: int
) -> None:
    """The model has slots for all twelve episodes, a worker has environments for four."""
    monkeypatch.setattr("evalharness.play.scheduler._LOOK_EVERY", 0.0)
    monkeypatch.setattr(EnvironmentPool, "look", lambda pool: share)
    pool = EnvironmentPool(compass, None, max_workers=3, size=1, busy_workers=1)

    async def play(job: PendingEpisode, environment: RemoteEnvironment) -> Episode:
        for _ in range(1000):
            await asyncio.sleep(0)
        return None  # type: ignore[return-value]

    scheduler = Scheduler(
        pools={"a": pool}, play=play, on_episode=lambda episode: None, on_failure=lambda *failure: None,
        slots=Slots(32), tries=1, cores=1,
    )  # fmt: skip
    await scheduler.run(jobs_of("a", [30.0] * 12))
    assert pool.size == workers
    await pool.close()


class _RefusalError(PolicyError):
    refuses_all = True


@pytest.mark.parametrize(
    ("error", "most"), [(PolicyError, 2), (_RefusalError, 1), (InfrastructureError, None)]
)
async def test_a_policy_that_gives_no_reply_ends_the_run(
    compass: EnvSpec, error: type[InfrastructureError], most: int | None
) -> None:
    """Whatever policy it is: the scheduler knows the contract's error and no server. A simulator's failures do not."""
    failures: list[Exception] = []

    async def fails(job: PendingEpisode, environment: RemoteEnvironment) -> Episode:
        raise error("no reply")

    scheduler = Scheduler(
        pools={"a": EnvironmentPool(compass, None, max_workers=1)}, play=fails, on_episode=lambda episode: None,
        on_failure=lambda job, attempt, failure, final: failures.append(failure), slots=Slots(1, pinned=True),
        tries=2,
    )  # fmt: skip
    if most is None:
        await scheduler.run(jobs_of("a", [1.0] * 3))
        assert len(failures) == 6
    else:
        with pytest.raises(AbortedError, match="no reply"):
            await scheduler.run(jobs_of("a", [1.0] * 3))
        assert len(failures) == most
