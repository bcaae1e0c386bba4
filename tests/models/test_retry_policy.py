"""What is said while a server refuses, and when it is given up."""

from __future__ import annotations

from evalharness.models.completion import TryFailedError
from evalharness.models.tries import RetryPolicy

BUSY = TryFailedError("busy", "HTTP 429: slow down")


def test_trouble_is_told_now_and_then_and_ends_with_an_answer() -> None:
    now, told = [0.0], list[str]()
    policy = RetryPolicy(limit_s=60.0, tell=told.append, clock=lambda: now[0])
    for second in range(12):
        now[0] = float(second)
        for _ in range(100):  # so many requests are refused in this second
            policy.failed()
            policy.retried("http://m/v1", BUSY, 2.0)
    assert told == [
        f"http://m/v1: HTTP 429: slow down; asked again in 2 s (no answer for {s} s, given up after 60 s)"
        for s in (0, 5, 10)
    ]
    policy.answered()
    policy.answered()
    assert told[3:] == [""]


def test_retrying_ends_only_where_nobody_is_answered() -> None:
    now = [0.0]
    policy = RetryPolicy(limit_s=10.0, clock=lambda: now[0])
    for second in (1.0, 9.0):
        now[0] = second
        policy.failed()
    assert not policy.is_spent
    policy.answered()  # somebody was
    for second, spent in ((10.0, False), (19.0, False), (21.0, True)):
        now[0] = second
        policy.failed()
        assert policy.is_spent is spent
