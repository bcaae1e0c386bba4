"""An agent from outside may be quicker than the loop: its action waits, and is not refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import Mock

import pytest

from evalharness.base.errors import UserError
from evalharness.models.base import PolicyStoppedError
from evalharness.models.openenv.wire import RefusedError
from evalharness.models.outside.hub import Hub, Offer
from evalharness.models.outside.messages import Action, Observation
from evalharness.models.outside.serve import FILE, HandOuts
from evalharness.records.lines import StoreError


async def claimed() -> Offer:
    hub = Hub(wait_s=60.0)
    offer = await hub.offer(("compass/open/000", 0), Observation(text="here", goal="there", turns_left=2))
    found, _ = await hub.claim("anybody", lambda: False)
    assert found is offer
    return offer


async def test_an_action_that_comes_before_the_loop_asks_is_carried_out() -> None:
    offer = await claimed()
    acting = asyncio.create_task(offer.act(Action(text="look")))
    await asyncio.sleep(0)
    assert not acting.done()
    assert (await offer.next_action(5.0)).text == "look"
    offer.show(Observation(text="a room", goal="there", turns_left=1))
    assert (await acting).observation.text == "a room"
    again = asyncio.create_task(offer.act(Action(text="wait")))
    await asyncio.sleep(0)
    assert (await offer.next_action(5.0)).text == "wait"
    again.cancel()


async def test_a_second_action_before_the_answer_is_refused() -> None:
    offer = await claimed()
    acting = asyncio.create_task(offer.act(Action(text="look")))
    await asyncio.sleep(0)
    with pytest.raises(RefusedError, match="still to come"):
        await offer.act(Action(text="look"))
    acting.cancel()


async def test_an_action_after_the_limit_hears_that_it_is_too_late() -> None:
    """Also once the loop has ended the episode."""
    offer = await claimed()
    with pytest.raises(PolicyStoppedError):
        await offer.next_action(0.0)
    with pytest.raises(RefusedError, match="too late"):
        await offer.act(Action(text="look"))
    offer.end(None)
    with pytest.raises(RefusedError, match="too late"):
        offer.hub.session(offer.session)


async def test_an_action_that_waits_hears_that_the_episode_is_over_or_void() -> None:
    for end in (lambda offer: offer.end(None), lambda offer: offer.stop("left")):
        offer = await claimed()
        acting = asyncio.create_task(offer.act(Action(text="look")))
        await asyncio.sleep(0)
        end(offer)
        with pytest.raises(RefusedError):
            await acting
    with pytest.raises(PolicyStoppedError):
        await offer.next_action(5.0)


async def test_an_episode_whose_hand_out_cannot_be_noted_is_the_next_one_again() -> None:
    note = Mock(side_effect=[StoreError("the disk is full"), 1])
    hub = Hub(wait_s=60.0, on_hand_out=note)
    opening = Observation(text="here", goal="there", turns_left=2)
    first = await hub.offer(("compass/open/000", 0), opening)
    await hub.offer(("compass/open/001", 0), opening)
    with pytest.raises(StoreError):
        await hub.claim("anybody", lambda: False)
    assert not first.claimed.is_set()
    assert (await hub.claim("anybody", lambda: False))[0] is first


def test_a_hand_out_that_names_no_episode_is_damage_and_says_so(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"task_id": "a", "sample": 0}\n{"task_id": "b"}\n')
    with pytest.raises(UserError, match="is damaged at line 2"):
        HandOuts(tmp_path)
