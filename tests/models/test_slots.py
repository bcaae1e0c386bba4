"""How many requests are at the model: never more than the limit, less after refusals, and fairness at the gate."""

from __future__ import annotations

import asyncio

import pytest

from evalharness.models.slots import Slots


async def test_a_pinned_number_of_requests_is_never_exceeded_and_all_are_served_in_turn() -> None:
    slots = Slots(3, pinned=True)
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
    slots.count_overload()
    assert slots.limit == 3


async def test_a_slot_is_not_lost_when_who_waits_for_it_is_cancelled() -> None:
    slots = Slots(1, pinned=True)

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
    slots = Slots(32)

    async def ask() -> int:
        async with slots.slot():
            return slots.busy

    async with slots.slot(), slots.slot(), slots.slot(), slots.slot():
        slots.count_overload()
        assert slots.limit == 2
        late = asyncio.create_task(ask())
        await asyncio.sleep(0)
        assert not late.done()
    assert await asyncio.wait_for(late, 1) <= 2


async def test_of_a_burst_of_refusals_one_counts() -> None:
    clock = 0.0
    slots = Slots(32, clock=lambda: clock)
    async with slots.slot(), slots.slot(), slots.slot(), slots.slot():
        for _ in range(10):
            slots.count_overload()
        assert slots.limit == 2
        clock = 5.0
        slots.count_overload()
        assert slots.limit == 1
    assert slots.overloads == 11


def test_preemptions_take_it_back_once_for_those_that_were_there_before() -> None:
    clock = 100.0
    slots = Slots(32, clock=lambda: clock)
    slots.busy = 32
    slots.note_preemption()
    assert slots.limit == 22
    slots.note_preemption()
    assert slots.limit == 22
    clock += 6
    slots.note_preemption()
    assert slots.limit == 15
    pinned = Slots(8, pinned=True, clock=lambda: clock)
    pinned.note_preemption()
    assert pinned.limit == 8


async def test_who_is_gone_when_its_turn_comes_takes_no_slot() -> None:
    slots = Slots(1, pinned=True)
    await slots.take()
    waiting = asyncio.create_task(slots.take())
    await asyncio.sleep(0)
    waiting.cancel()
    slots.leave()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert slots.busy == 0
    await slots.take()


def test_replies_without_trouble_bring_the_slots_back_one_by_one() -> None:
    slots = Slots(10)
    slots.count_overload()
    assert slots.limit == 1
    for limit in range(2, 11):
        for _ in range(slots.limit):
            slots.count_reply()
        assert slots.limit == limit
    for _ in range(100):
        slots.count_reply()
    assert slots.limit == 10


def test_as_many_conversations_as_the_caches_hold_and_no_more_than_the_run_wanted() -> None:
    slots = Slots(512)
    slots.set_cache(100_000)
    assert slots.limit == slots.most == 33
    slots.set_cache(1_000)
    assert slots.limit == 8
    slots.set_cache(9_000_000)  # further servers are up: the limit rises with the replies
    assert (slots.limit, slots.most) == (8, 512)
    fixed = Slots(64, pinned=True)
    fixed.set_cache(1_000)
    assert fixed.limit == 64
