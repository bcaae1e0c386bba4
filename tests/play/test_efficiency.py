"""Efficiency, and where the time went: pure functions of what was measured."""

from __future__ import annotations

from typing import Any

import pytest

from evalharness.base.timing import FamilyTimes, Latencies
from evalharness.play.efficiency import Measured, report
from evalharness.records.summary import Server


def measured(**changes: Any) -> Measured:
    """100 s, 32 slots, ScienceWorld alone, the server busy all the time, unless changed."""
    times = changes.pop("times", {"sciworld": FamilyTimes(90, 2700, 3200.0, 3150.0, 0.0, 40.0, 5.0)})
    values: dict[str, Any] = {
        "wall_s": 100.0, "cores": 8, "families": times, "environment_cpu_s": {"sciworld": 45.0},
        "workers": {"sciworld": 2}, "client_cpu_s": 5.0, "longest_episode_s": 30.0, "allowed_slot_s": 3200.0,
        "concurrency": 32, "highest_concurrency": 32, "pinned": False, "server": None,
    }  # fmt: skip
    return Measured(**(values | changes))


def server(**changes: Any) -> Server:
    values = dict.fromkeys(
        ("running_mean", "waiting_mean", "prompt_tokens_per_s", "generation_tokens_per_s"), 1.0
    ) | {
        "requests_s": 3100.0,
        "prefix_cache_hit_rate": 0.93,
        "preemptions": 0,
        "kv_cache_usage_peak": 0.4,
    }
    return Server.of(values | changes)


def test_a_server_that_was_always_full_is_the_bound() -> None:
    told = report(measured())
    assert told.bound == "model"
    assert told.efficiency == pytest.approx(3150 / 3200)
    assert sum(told.time.values()) == pytest.approx(1.0)


def test_the_servers_own_clock_counts_where_it_is_known() -> None:
    assert report(measured(server=server())).efficiency == pytest.approx(3100 / 3200)


def test_a_run_without_time_has_no_efficiency() -> None:
    assert report(measured(wall_s=0.0)).efficiency is None


def test_latencies_are_summed_up_in_constant_memory() -> None:
    latencies = Latencies()
    assert latencies.quantile(0.5) is None
    for index in range(1, 10_001):
        latencies.add(index / 1000)
    assert latencies.quantile(0.1) == pytest.approx(1.0, rel=0.05)
    assert latencies.quantile(0.5) == pytest.approx(5.0, rel=0.05)
    assert len(latencies.counts) < 300
