"""How many processes a family may have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evalharness.config import make_config
from evalharness.envs.base import EnvSpec, Task
from evalharness.envs.sciworld import SPEC
from evalharness.play.scheduler import PendingEpisode
from evalharness.play.sizing import make_pools
from evalharness.play.workers.pool import EnvironmentPool

TWENTY_FOUR = replace(SPEC, worker=replace(SPEC.worker, envs_per_worker=24))


def pool_of(spec: EnvSpec, episodes: int, **options: Any) -> EnvironmentPool:
    """On two cores."""
    jobs = [
        PendingEpisode(Task(f"x/{i}", spec.family, "open", i, "g", "easy", "k"), 0) for i in range(episodes)
    ]
    config = make_config({"model": "http://h/v1", "suite": "open", **options})
    pools = make_pools(
        config.execution.workers, {spec.family: spec}, jobs, 2,
        scripted=config.policy.is_scripted, data=None, log=None,
    )  # fmt: skip
    return pools[spec.family]


def test_idle_cores_may_hold_all_of_a_family() -> None:
    """Two processes a core: each waits for the model most of the time."""
    pool = pool_of(TWENTY_FOUR, 90)
    assert pool.size == 2
    assert not pool.grow()
    assert pool.grow(cores_idle=True)
    assert pool.grow(cores_idle=True)
    assert not pool.grow(cores_idle=True)
    assert pool.capacity >= 90


@pytest.mark.parametrize(
    ("episodes", "options", "workers"),
    [
        (30, {}, 2),  # no more than have work
        (90, {"workers": {"sciworld": 1}}, 1),
        (3, {"model": "random"}, 3),  # one episode a process: nothing waits for a model
        (90, {"model": "random"}, 4),
    ],
)
def test_no_more_workers_than_have_work_or_were_asked_for(
    episodes: int, options: dict[str, Any], workers: int
) -> None:
    pool = pool_of(TWENTY_FOUR, episodes, **options)
    while pool.grow(cores_idle=True):
        pass
    assert pool.size == workers
