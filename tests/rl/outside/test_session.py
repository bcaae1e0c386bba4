"""An agent from outside may be quicker than the loop: its action waits, and is not refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import Mock

import pytest

from evalharness.base.errors import UserError
from evalharness.models.base import PolicyStoppedError
from evalharness.records.lines import StoreError
from evalharness.rl.outside.messages import Action, Observation
from evalharness.rl.outside.serve import FILE, HandOuts
from evalharness.rl.outside.session import Session
from evalharness.rl.wire import RefusedError

OPENING = Observation(text="here", goal="there", turns_left=2)


def claimed() -> Session:
    session = Session(("compass/open/000", 0), OPENING, lambda key: 1)
    assert session.claim().observation is OPENING
    return session


async def test_an_action_that_comes_before_the_loop_asks_is_carried_out() -> None:
    session = claimed()
    acting = asyncio.create_task(session.act(Action(text="look")))
    await asyncio.sleep(0)
    assert not acting.done()
    assert (await session.next_action(5.0)).text == "look"
    session.show(Observation(text="a room", goal="there", turns_left=1))
    assert (await acting).observation.text == "a room"
    again = asyncio.create_task(session.act(Action(text="wait")))
    await asyncio.sleep(0)
    assert (await session.next_action(5.0)).text == "wait"
    again.cancel()


async def test_a_second_action_before_the_answer_is_refused() -> None:
    session = claimed()
    acting = asyncio.create_task(session.act(Action(text="look")))
    await asyncio.sleep(0)
    with pytest.raises(RefusedError, match="come"):
        await session.act(Action(text="look"))
    acting.cancel()


@pytest.mark.parametrize("over", [False, True])
async def test_an_action_after_the_limit_hears_that_it_is_too_late(over: bool) -> None:
    session = claimed()
    with pytest.raises(PolicyStoppedError):
        await session.next_action(0.0)
    if over:
        session.end(None)
    with pytest.raises(RefusedError, match="too late"):
        await session.act(Action(text="look"))


async def test_an_action_that_waits_hears_that_the_episode_is_over_or_void() -> None:
    for end in (lambda session: session.end(None), lambda session: session.stop("left")):
        session = claimed()
        acting = asyncio.create_task(session.act(Action(text="look")))
        await asyncio.sleep(0)
        end(session)
        with pytest.raises(RefusedError):
            await acting
    with pytest.raises(PolicyStoppedError):
        await session.next_action(5.0)


def test_an_episode_whose_hand_out_cannot_be_noted_can_be_asked_for_again() -> None:
    session = Session(("a", 0), OPENING, Mock(side_effect=[StoreError("the disk is full"), 1]))
    with pytest.raises(StoreError):
        session.claim()
    assert not session.claimed.is_set()
    assert session.claim().observation is OPENING


def test_a_hand_out_that_names_no_episode_is_damage_and_says_so(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"task_id": "a", "sample": 0}\n{"task_id": "b"}\n')
    with pytest.raises(UserError, match="line 2"):
        HandOuts(tmp_path)
