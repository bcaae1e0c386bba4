"""The time left that a person who waits reads."""

from __future__ import annotations

import pytest
from made_runs import made_episode, make_task

from evalharness.play.progress import FamilyProgress, Progress

TURN = made_episode(make_task("pddl", 0), turns=1).turns[0]


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("evalharness.play.progress.time", clock)
    return clock


def test_the_time_left_is_the_turns_left_at_the_rate_of_the_recent_turns(clock: Clock) -> None:
    """Ten slow turns of an earlier model load do not count once 200 quick ones are there; a stall does."""
    keys = [(f"pddl/open/{index:03d}", 0) for index in range(10)]
    progress = Progress({"pddl": FamilyProgress(10)})
    progress.turns_left = dict.fromkeys(keys, 30.0)
    for _ in range(21):
        for key in keys:
            clock.now += 0.5 if len(progress.turn_ends) >= 10 else 60.0
            progress.count_turn(key, TURN)
    assert progress.seconds_left == pytest.approx(90 * 0.5, rel=0.01)
    clock.now += 100.0
    assert progress.seconds_left == pytest.approx(90 * 1.0, rel=0.01)


def test_nothing_is_said_before_there_are_turns_and_after_the_last_episode(clock: Clock) -> None:
    progress = Progress({"pddl": FamilyProgress(1)})
    key = ("pddl/agentboard/000", 0)
    progress.turns_left = {key: 30.0}
    progress.begin_episode("pddl")
    assert progress.seconds_left is None
    for _ in range(22):
        clock.now += 1.0
        progress.count_turn(key, TURN)
    assert progress.seconds_left is not None
    progress.give_up("pddl", *key)
    assert progress.seconds_left is None
    assert progress.families["pddl"].failures == 1
