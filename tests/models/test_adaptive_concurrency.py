"""How many episodes are in flight: the search against model servers with a known limit, and fairness at the gate."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from evalharness.models.adaptive_concurrency import (
    START,
    AdaptiveConcurrency,
    AutoLimit,
    Window,
    ceiling,
    whole_waves,
)


def search(capacity: float, *, ceiling: int = 512, windows: int = 40, thrash: float = 0.0) -> list[int]:
    """Limits over time against a server whose throughput grows up to `capacity` requests and falls by `thrash` a
    doubling beyond."""
    auto = AutoLimit(ceiling)
    limits = []
    for _ in range(windows):
        beyond = max(0.0, auto.limit / capacity - 1)
        rate = min(auto.limit, capacity) / (1 + thrash * beyond)
        auto.window(Window(turns=100, seconds=100 / rate, full=True))
        limits.append(auto.limit)
    return limits


def test_it_grows_to_the_ceiling_of_a_server_that_takes_everything() -> None:
    assert search(10_000)[-1] == 512


def test_it_settles_where_more_no_longer_pays() -> None:
    limits = search(100)
    assert max(limits) == 256  # tried once, and without gain
    assert limits[-1] == 128
    assert limits.count(256) <= 3


def test_it_stays_low_where_more_harms() -> None:
    assert search(START, thrash=0.5)[-1] == START


def test_a_window_that_was_not_full_says_nothing() -> None:
    auto = AutoLimit(512)
    for _ in range(20):
        auto.window(Window(turns=100, seconds=0.1, full=False))
    assert auto.limit == START


def test_after_a_step_back_quiet_windows_bring_it_up_again() -> None:
    auto = AutoLimit(512)
    auto.retreat(9)
    assert auto.limit == 9
    for _ in range(100):
        auto.window(Window(turns=100, seconds=100 / auto.limit, full=True))
    assert auto.limit > 64


def test_refusals_never_take_it_below_one() -> None:
    slots = AdaptiveConcurrency(pinned=None, clock=count(step=10).__next__)
    for _ in range(50):
        slots.overloaded()
    assert slots.limit == 1


def test_a_queue_at_the_server_takes_it_back_to_what_runs() -> None:
    slots = AdaptiveConcurrency(pinned=None)
    slots.saturated(running=START - 5)
    assert slots.limit == START - 5
    slots.saturated(running=START)
    assert slots.limit == START - 5


async def test_a_pinned_number_of_requests_is_never_exceeded_and_all_are_served_in_turn() -> None:
    slots = AdaptiveConcurrency(pinned=3)
    order: list[int] = []
    most = 0

    async def ask(number: int) -> None:
        nonlocal most
        async with slots.slot():
            order.append(number)
            most = max(most, slots.busy)
            await asyncio.sleep(0)

    await asyncio.gather(*(ask(number) for number in range(50)))
    assert order == list(range(50))
    assert most == 3
    assert slots.busy == 0
    slots.overloaded()
    assert slots.limit == 3


async def test_a_slot_is_not_lost_when_who_waits_for_it_is_cancelled() -> None:
    slots = AdaptiveConcurrency(pinned=1)

    async def hold() -> None:
        async with slots.slot():
            held.append(slots.busy)

    held: list[int] = []
    async with slots.slot():
        waiting = [asyncio.create_task(hold()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
    waiting[1].cancel()  # has just been given the slot
    await asyncio.wait(waiting, timeout=1)
    assert [task.cancelled() for task in waiting] == [True, True, False]
    assert held == [1]
    assert slots.busy == 0


async def test_backing_off_holds_at_once_for_requests_of_episodes_in_flight() -> None:
    slots = AdaptiveConcurrency(pinned=None)

    async def ask() -> int:
        async with slots.slot():
            return slots.busy

    async with slots.slot(), slots.slot(), slots.slot(), slots.slot():
        slots.overloaded()
        assert slots.limit == 2
        late = asyncio.create_task(ask())
        await asyncio.sleep(0)
        assert not late.done()
    assert await asyncio.wait_for(late, 1) <= 2


async def test_of_a_burst_of_refusals_one_counts() -> None:
    clock = 0.0
    slots = AdaptiveConcurrency(pinned=None, clock=lambda: clock)
    async with slots.slot(), slots.slot(), slots.slot(), slots.slot():
        for _ in range(10):
            slots.overloaded()
        assert slots.limit == 2
        clock = 5.0
        slots.overloaded()
        assert slots.limit == 1
    assert slots.overloads == 11


async def answer(
    slots: AdaptiveConcurrency, clock: list[float], replies: int, *, seconds: float, taken: float = 1.0
) -> None:
    """Replies at a steady pace, `seconds` for as many as may be asked at once, with a share of the slots taken."""
    for _ in range(replies):
        while slots.has_room:
            slots.begin_episode()
        while slots.episodes > slots.limit:
            slots.end_episode()
        while slots.busy < max(1, int(taken * slots.limit)):
            await slots.take_slot()
        while slots.busy > slots.limit:
            slots.leave_slot()
        clock[0] += seconds / slots.limit
        slots.leave_slot()
        slots.answered()


async def test_empty_slots_say_nothing_of_the_server_until_they_have_been_empty_for_long() -> None:
    """Environments that are just starting leave slots empty; those that always work long need more episodes."""
    clock = [0.0]
    slots = AdaptiveConcurrency(pinned=None, ceiling=64, clock=lambda: clock[0])
    await answer(slots, clock, 5 * START, seconds=0.5, taken=0.5)
    assert slots.limit == START
    await answer(slots, clock, 10 * START, seconds=0.5, taken=0.5)
    assert slots.limit == 64


async def order_of_slots(slots: AdaptiveConcurrency, asked: list[tuple[str, float]]) -> list[int]:
    """Which of those who ask while the only slot is taken gets it when."""
    order: list[int] = []

    async def ask(number: int, family: str, turns_left: float) -> None:
        await slots.take_slot(family, turns_left)
        order.append(number)
        slots.leave_slot()

    await slots.take_slot()
    asking = [asyncio.create_task(ask(number, *what)) for number, what in enumerate(asked)]
    await asyncio.sleep(0)
    slots.leave_slot()
    await asyncio.gather(*asking)
    return order


ASKED = [("a", 3.0), ("b", 9.0), ("a", 20.0), ("b", 1.0), ("a", 20.0)]


async def test_families_that_wait_for_environments_are_served_first_and_the_longest_at_the_end() -> None:
    slots = AdaptiveConcurrency(pinned=1)
    assert await order_of_slots(slots, ASKED) == [0, 1, 2, 3, 4]
    slots.wanting = {"b": 12.5}
    assert await order_of_slots(slots, ASKED) == [1, 3, 0, 2, 4]
    slots.wanting = {"b": 12.5, "a": 13.0}
    assert await order_of_slots(slots, ASKED) == [0, 2, 4, 1, 3]
    slots.wanting = None
    assert await order_of_slots(slots, ASKED) == [2, 4, 1, 0, 3]


async def test_throughput_that_has_fallen_for_good_takes_it_back_and_one_slow_moment_does_not() -> None:
    clock = [0.0]
    slots = AdaptiveConcurrency(pinned=None, ceiling=64, clock=lambda: clock[0])
    await answer(slots, clock, 600, seconds=1.0)
    assert slots.limit == 64
    await answer(slots, clock, 30, seconds=9.0)  # within one window and its settling time
    await answer(slots, clock, 300, seconds=1.0)
    assert slots.limit == 64
    await answer(slots, clock, 300, seconds=9.0)
    assert slots.limit == 44


def test_the_ceiling_counts_every_server_and_what_each_runs_at_once() -> None:
    assert ceiling(1, None, 10_000) == 512
    assert ceiling(4, None, 10_000) == 2048
    assert ceiling(4, 64, 10_000) == 256
    assert ceiling(4, 1024, 10_000) == 2048
    assert ceiling(4, None, 416) == 416
    assert ceiling(1, None, 0) == 1


def test_the_search_goes_up_to_the_ceiling_of_several_servers() -> None:
    assert search(10_000, ceiling=ceiling(4, None, 10_000))[-1] == 2048


async def test_preemptions_take_it_back_once_for_those_that_were_there_before() -> None:
    clock = 100.0
    slots = AdaptiveConcurrency(pinned=None, clock=lambda: clock)
    slots.preempted()
    assert slots.limit == int(START * 0.7)
    slots.preempted()
    assert slots.limit == int(START * 0.7)
    clock += 6
    slots.preempted()
    assert slots.limit == int(int(START * 0.7) * 0.7)
    pinned = AdaptiveConcurrency(pinned=8, clock=lambda: clock)
    pinned.preempted()
    assert pinned.limit == 8


def test_episodes_are_in_flight_in_whole_waves() -> None:
    assert whole_waves(64, 416) == 70  # six waves
    assert whole_waves(64, 128) == 64
    assert whole_waves(64, 70) == 70  # one, instead of two of which the second would be six episodes
    assert whole_waves(64, 127) == 96  # not more than half as many again
    assert whole_waves(64, 64) == whole_waves(64, 3) == 64
    assert whole_waves(1, 5) == 1
    for limit in (1, 7, 32, 512):
        for left in range(0, 3 * limit):
            assert limit <= whole_waves(limit, left) <= 1.5 * limit


def test_more_conversations_than_slots_are_begun_only_where_the_server_holds_them() -> None:
    def begun(slots: AdaptiveConcurrency, left: int) -> int:
        while slots.has_room_for(left):
            slots.begin_episode()
        return slots.episodes

    assert begun(AdaptiveConcurrency(pinned=None), 40) == 40 > START
    assert begun(AdaptiveConcurrency(pinned=32), 40) == 32
    full = AdaptiveConcurrency(pinned=None, clock=lambda: 100.0)
    full.preempted()
    assert begun(full, 40) == full.limit < START


async def test_who_is_gone_when_its_turn_comes_takes_no_slot() -> None:
    slots = AdaptiveConcurrency(pinned=1)
    await slots.take_slot()
    waiting = asyncio.create_task(slots.take_slot())
    await asyncio.sleep(0)
    waiting.cancel()
    slots.leave_slot()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert slots.busy == 0
    await slots.take_slot()
