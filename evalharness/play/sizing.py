"""Choose the initial number of requests in flight and of worker processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from evalharness.config import PolicyConfig
from evalharness.envs.base import EnvSpec
from evalharness.models.slots import MOST, Slots
from evalharness.play.scheduler import PendingEpisode
from evalharness.play.workers.pool import EnvironmentPool

WORKERS_PER_CORE = 2
"""Maximum number of workers of a family per core while cores are idle. Workers mostly wait for the model; with one
worker per core a family could need two rounds of episodes (66 s instead of 42 with a model that takes 1 s a turn)."""
_FEW_ENVIRONMENTS = 8
"""A worker with fewer environments is idle most of the time. Such a family may add workers while all cores are busy."""


def request_slots(policy: PolicyConfig, workers: int, jobs: int, cores: int) -> Slots:
    if policy.concurrency is not None:
        return Slots(policy.concurrency, pinned=True)
    if policy.is_scripted:
        # A script replies at once, so more episodes than processes that work at the same time would only wait.
        return Slots(max(2 * cores, workers), pinned=True)
    servers = max(policy.replicas, len(policy.endpoints))
    return Slots(max(1, min(servers * MOST, jobs)))


def make_pools(
    workers: Mapping[str, int],
    specs: Mapping[str, EnvSpec],
    jobs: Sequence[PendingEpisode],
    cores: int,
    *,
    scripted: bool,
    data: Path | None,
    log: Path | None,
) -> dict[str, EnvironmentPool]:
    """Make a pool for each family that has jobs. No process is started yet.

    `workers`: family -> processes, if the user set the number. `scripted`: replies take no time, so
    a worker gets only one episode at a time."""
    count = Counter(job.task.family for job in jobs)
    expected = dict.fromkeys(count, 0.0)
    for job in jobs:
        expected[job.task.family] += job.expected_turns * specs[job.task.family].worker.cost
    sizes = pool_sizes(expected, cores)
    pools = {}
    for family in sorted(count):
        spec = specs[family]
        pinned = workers.get(family)
        per_worker = 1 if scripted else spec.worker.envs_per_worker
        most = min(pinned or WORKERS_PER_CORE * cores, -(-count[family] // per_worker))
        pools[family] = EnvironmentPool(
            spec,
            data,
            max_workers=most,
            log=log,
            size=pinned or sizes[family],
            busy_workers=0 if pinned or spec.worker.envs_per_worker < _FEW_ENVIRONMENTS else cores,
            episodes_per_worker=per_worker,
            repeats_fatal_actions=True,
        )
    return pools


def pool_sizes(work: Mapping[str, float], cores: int) -> dict[str, int]:
    """Return the initial number of worker processes by family: proportional to the expected work, at least one."""
    whole = sum(work.values())
    return {
        family: max(1, min(cores, round(cores * own / whole) if whole else 1)) for family, own in work.items()
    }
