"""Which conversations go on so that the server's cache holds all of them."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from evalharness.models.cache_room import CacheRoom
from evalharness.models.slots import Slots


def room_of(capacity: float, *tokens: int) -> CacheRoom:
    """Conversations 0, 1, ... of one family that have so many tokens and go on; another one has ended."""
    room = CacheRoom()
    room.note_request("ended")
    room.note_reply("ended", "a", tokens[0])
    room.end("ended")
    room.capacity = capacity
    for key, many in enumerate(tokens):
        room.note_request(key)
        room.note_reply(key, "a", many)
    return room


def may(room: CacheRoom, key: int) -> bool:
    """Whether a conversation's next request may be sent."""
    return room.needs(key) <= room.spare()


def test_without_a_known_cache_all_go_on() -> None:
    room = CacheRoom()
    room.note_request(0)
    room.note_reply(0, "a", 10**9)
    assert may(room, 1)
    assert not room.is_full


def test_another_comes_in_while_there_is_room_for_all_to_grow() -> None:
    assert may(room_of(1000, 100, 300), 2)  # what all begin with is held once
    full = room_of(1200, 100, 500)
    assert full.is_full
    assert not may(full, 2)
    assert may(full, 0)
    full.end(1)
    assert may(full, 2)


def test_before_one_has_ended_few_begin() -> None:
    """Afterwards there is room for as many as fit if each becomes as long as the longest one so far."""
    room = CacheRoom()
    room.capacity = 10_000
    for key in range(4):
        assert may(room, key) == (key < 3)
        room.note_request(key)
    for key in range(4):
        room.note_reply(key, "a", 100 + 200 * key)
    assert not may(room, 4)
    room.end(0)
    assert may(room, 4)


def test_the_youngest_waits_where_the_cache_is_outgrown_and_goes_on_later() -> None:
    room = room_of(1000, 100, 400, 400)
    room.note_reply(0, "a", 450)
    assert [may(room, key) for key in range(3)] == [True, True, False]
    room.end(1)
    assert may(room, 2)


def test_one_goes_on_however_long_it_is() -> None:
    room = room_of(1000, 5000)
    assert may(room, 0)
    assert not may(room, 1)
    room.end(0)
    assert may(room, 1)


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ab"), st.integers(1, 3000)), max_size=60))
def test_somebody_may_always_go_on(replies: list[tuple[int, str, int]]) -> None:
    room = CacheRoom()
    room.capacity = 4000
    family = {key: name for key, name, _ in replies}
    for key, _, tokens in replies:
        assert any(may(room, k) for k in range(10))
        if may(room, key):
            room.note_request(key)
            room.note_reply(key, family[key], tokens)


async def computed(holds: int | None) -> int:
    """Tokens that a server computes for twelve conversations of eight turns each, which begin with the same 200. Its
    cache keeps 2,000 tokens, the last used ones."""
    slots = Slots(32)
    if holds is not None:
        slots.set_cache(holds)
    cache: dict[int, int] = {}
    total = 0

    async def talk(key: int) -> None:
        nonlocal total
        for turn in range(8):
            await slots.take(key)
            own = 100 * (turn + 1)
            total += own - cache.pop(key, 0)
            cache[key] = own
            while sum(cache.values()) > 1800:
                del cache[next(iter(cache))]
            await asyncio.sleep(0.001)
            slots.room.note_reply(key, "a", 200 + own)
            slots.leave()
        slots.end_conversation(key)

    await asyncio.wait_for(asyncio.gather(*map(talk, range(12))), 20)
    return total


async def test_where_the_caches_size_is_known_less_is_computed_again() -> None:
    least, all_taking_turns, known = 12 * 800, await computed(None), await computed(2000)
    assert known - least < (all_taking_turns - least) * 0.6


async def test_slots_that_a_full_cache_leaves_empty_were_not_to_be_had() -> None:
    now = 0.0
    slots = Slots(8, pinned=True, clock=lambda: now)
    for key, tokens in enumerate((100, 500)):
        await slots.take(key)
        slots.room.note_reply(key, "a", tokens)
        slots.leave()
    slots.set_cache(1200)
    now += 10
    assert slots.allowed_slot_s() == 20
    slots.end_conversation(1)
    now += 10
    assert slots.allowed_slot_s() == 100
