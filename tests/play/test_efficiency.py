"""Efficiency, where the time went, and the advice: pure functions of what was measured."""

from __future__ import annotations

from typing import Any

import pytest

from evalharness.base.timing import FamilyTimes, Latencies
from evalharness.play.efficiency import Measured, report
from evalharness.records.summary import Server

TITLES = {"sciworld": "ScienceWorld", "babyai": "BabyAI"}


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
    told = report(measured(), TITLES)
    assert told.bound == "model"
    assert told.efficiency == pytest.approx(3150 / 3200)
    assert told.advice is None
    assert sum(told.time.values()) == pytest.approx(1.0)


def test_the_servers_own_clock_counts_where_it_is_known() -> None:
    assert report(measured(server=server()), TITLES).efficiency == pytest.approx(3100 / 3200)


def test_too_few_workers_by_the_users_order_are_named() -> None:
    slow = {
        "sciworld": FamilyTimes(90, 2700, 3000.0, 700.0, 0.0, 300.0, 1950.0),
        "babyai": FamilyTimes(112, 3000, 200.0, 190.0, 0.0, 5.0, 1.0),
    }
    told = report(measured(times=slow, given_workers={"sciworld": 2}), TITLES)
    assert told.efficiency is not None
    assert told.efficiency < 0.5
    assert told.advice == "waiting 70% on ScienceWorld workers: leave out --workers sciworld=2 (up to 16)"


@pytest.mark.parametrize(
    "changes",
    [
        {"workers": {"sciworld": 16}},
        {"given_workers": {"sciworld": 4}, "cores": 2, "environment_cpu_s": {"sciworld": 40.0}},
        {
            "given_workers": {"sciworld": 2},
            "cores": 2,
            "environment_cpu_s": {"sciworld": 140.0},
            "client_cpu_s": 40.0,
        },
    ],
    ids=["the run chose their number itself", "as many as two cores can use", "all cores are busy"],
)
def test_more_workers_are_not_advised_if_they_would_not_help(changes: dict[str, Any]) -> None:
    slow = {"sciworld": FamilyTimes(90, 2700, 3000.0, 700.0, 0.0, 300.0, 1950.0)}
    assert report(measured(times=slow, **changes), TITLES).advice is None


def test_a_pinned_concurrency_that_is_too_low_is_said() -> None:
    waiting = {"sciworld": FamilyTimes(90, 2700, 3200.0, 1600.0, 1500.0, 40.0, 5.0)}
    told = report(measured(times=waiting, pinned=True), TITLES)
    assert "raise --concurrency 64" in (told.advice or "")


def test_a_cache_that_is_too_small_is_said_even_at_the_bound() -> None:
    told = report(measured(server=server(prefix_cache_hit_rate=0.2, kv_cache_usage_peak=1.0)), TITLES)
    assert "20% of the prompt tokens" in (told.advice or "")
    told = report(measured(server=server(preemptions=500)), TITLES)
    assert "500 requests" in (told.advice or "")


def test_a_server_that_was_down_is_said() -> None:
    times = {"sciworld": FamilyTimes(90, 2700, 1000.0, 900.0, 0.0, 40.0, 5.0)}
    assert "down for 60 s" in (report(measured(times=times, down_s=60.0), TITLES).advice or "")


def test_a_run_without_time_has_no_efficiency() -> None:
    assert report(measured(wall_s=0.0), TITLES).efficiency is None


def test_latencies_are_summed_up_in_constant_memory() -> None:
    latencies = Latencies()
    assert latencies.quantile(0.5) is None
    for index in range(1, 10_001):
        latencies.add(index / 1000)
    assert latencies.quantile(0.1) == pytest.approx(1.0, rel=0.05)
    assert latencies.quantile(0.5) == pytest.approx(5.0, rel=0.05)
    assert len(latencies.counts) < 300
