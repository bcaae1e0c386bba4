"""Trying again: how often, when nothing else is tried either, and what is said while a server refuses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from evalharness.base.errors import InfrastructureError
from evalharness.models.base import PolicyError
from evalharness.models.completion import RequestFaultError, RequestRefusedError, TryFailedError
from evalharness.models.server_error import ServerError
from evalharness.models.tries import AbortedError, RetryPolicy, Tries
from evalharness.records.lines import LineFile, StoreError


class Failing:
    """Raises these in turn, then gives `done`."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.failures: list[tuple[str, int, bool]] = []

    async def __call__(self) -> str:
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    def note(self, key: str, attempt: int, error: InfrastructureError, final: bool) -> None:
        self.failures.append((key, attempt, final))


async def test_a_thing_is_tried_as_often_as_allowed_and_then_given_up() -> None:
    work = Failing(*[InfrastructureError("no")] * 2)
    assert await Tries[str](3, work.note).of("a", work) == "done"
    assert work.failures == [("a", 1, False), ("a", 2, False)]
    work = Failing(*[InfrastructureError("no")] * 3)
    assert await Tries[str](3, work.note).of("a", work) is None
    assert work.failures == [("a", 1, False), ("a", 2, False), ("a", 3, True)]


@pytest.mark.parametrize(("at_once", "things"), [(1, 1), (6, 3)])
async def test_a_model_that_answers_nobody_ends_everything(at_once: int, things: int) -> None:
    """As many failures in a row as things at once can have for one cause; an answer starts the count anew."""
    errors: Sequence[Exception] = [PolicyError("no reply")] * (2 * things)
    work = Failing(*errors)
    tries = Tries[str](2, work.note, at_once=lambda: at_once)
    for number in range(things - 1):
        assert await tries.of(str(number), work) is None
    with pytest.raises(AbortedError, match="no reply"):
        await tries.of("last", work)
    work.errors = [PolicyError("no reply")]
    tries.note_answer()
    assert await tries.of("again", work) == "done"


async def test_what_is_refused_to_all_is_not_tried_again() -> None:
    work = Failing(RequestRefusedError("no such key", ServerError.of(401, b"no such key")))
    with pytest.raises(AbortedError, match="no such key"):
        await Tries[str](3, work.note).of("a", work)
    work = Failing(RequestRefusedError("bad", ServerError.of(400, b"bad")))
    with pytest.raises(RequestRefusedError):
        await Tries[str](3, work.note).of("a", work)
    assert work.failures == []


async def test_what_one_conversation_says_may_be_refused_where_the_model_has_answered_others() -> None:
    refused = RequestFaultError("filtered", ServerError.of(400, b"filtered"))
    work = Failing(refused)
    assert await Tries[str](3, work.note, replies=lambda: 1).of("a", work) is None
    assert work.failures == [("a", 1, True)]
    with pytest.raises(RequestRefusedError):
        await Tries[str](3, work.note).of("a", Failing(refused))


async def test_a_thing_that_fails_again_and_again_between_answers_ends_nothing_else() -> None:
    replies = iter(range(100))
    work = Failing(*[PolicyError("no reply")] * 4)
    tries = Tries[str](2, work.note, replies=lambda: next(replies))
    assert [await tries.of(key, work) for key in "ab"] == [None, None]


async def test_a_model_that_is_gone_and_what_is_hopeless_end_everything_at_the_first_try() -> None:
    for tries, hopeless in (("gone", None), (None, "hopeless")):
        work = Failing(InfrastructureError("no"))
        with pytest.raises(AbortedError, match=r"gone|hopeless"):
            await Tries[str](3, work.note, lambda why=tries: why).of(
                "a", work, lambda error, why=hopeless: why
            )
        assert work.failures == [("a", 1, True)]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
async def test_a_full_disk_is_not_tried_again() -> None:
    async def write() -> None:
        LineFile(Path("/dev/full")).append({"a": 1})

    work = Failing()
    with pytest.raises(StoreError, match="No space left"):
        await Tries[str](3, work.note).of("a", write)
    assert work.failures == []


BUSY = TryFailedError("busy", "HTTP 429: slow down")


def test_trouble_is_told_now_and_then_and_ends_with_an_answer() -> None:
    now, told = [0.0], list[str]()
    policy = RetryPolicy(limit_s=60.0, tell=told.append, clock=lambda: now[0])
    for second in range(12):
        now[0] = float(second)
        for _ in range(100):  # so many requests are refused in this second
            policy.note_failure()
            policy.note_retry("http://m/v1", BUSY, 2.0)
    assert told == [
        f"http://m/v1: HTTP 429: slow down; asked again in 2 s (no answer for {s} s, given up after 60 s)"
        for s in (0, 5, 10)
    ]
    policy.note_answer()
    policy.note_answer()
    assert told[3:] == [""]


def test_retrying_ends_only_where_nobody_is_answered() -> None:
    now = [0.0]
    policy = RetryPolicy(limit_s=10.0, clock=lambda: now[0])
    for second in (1.0, 9.0):
        now[0] = second
        policy.note_failure()
    assert not policy.is_spent
    policy.note_answer()  # somebody was
    for second, spent in ((10.0, False), (19.0, False), (21.0, True)):
        now[0] = second
        policy.note_failure()
        assert policy.is_spent is spent
