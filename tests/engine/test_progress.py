"""What a person who waits is told: how long it will take yet."""

from __future__ import annotations

import time

import pytest
from made_runs import made_episode, make_task

from evalharness.engine.progress import FamilyProgress, Progress

TASKS = [make_task("pddl", index) for index in range(40)]


def going_on(monkeypatch: pytest.MonkeyPatch, elapsed: float) -> Progress:
    """40 episodes are left to play, of 30 expected turns each."""
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    progress = Progress({"pddl": FamilyProgress(40)}, started=now - elapsed)
    progress.expect({(task.id, 0): 30.0 for task in TASKS})
    return progress


def play(progress: Progress, turns: int, *finished: int) -> None:
    progress.turns += turns
    for index in finished:
        progress.finish(made_episode(TASKS[index], turns=15))


def test_what_is_left_is_told_before_the_first_episode_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 of 1,200 turns in 60 s: three times as much is left."""
    progress = going_on(monkeypatch, 60.0)
    assert progress.seconds_left is None
    play(progress, 300)
    assert progress.seconds_left == pytest.approx(180.0)


def test_episodes_to_come_last_as_long_as_those_that_are_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """30 episodes took half of what was expected; so will the others, with ten expected ones in the balance."""
    progress = going_on(monkeypatch, 60.0)
    play(progress, 450, *range(30))
    assert progress.seconds_left == pytest.approx(10 * 30 * (450 + 300) / (900 + 300) * 60 / 450)


def test_a_first_short_episode_does_not_upset_the_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = going_on(monkeypatch, 60.0)
    play(progress, 300)
    before = progress.seconds_left
    play(progress, 0, 0)
    assert before is not None
    assert progress.seconds_left == pytest.approx(before, rel=0.15)


def test_episodes_given_up_and_finished_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = going_on(monkeypatch, 60.0)
    play(progress, 585, *range(39))
    progress.give_up("pddl", TASKS[39].id, 0)
    assert progress.seconds_left is None
    assert progress.families["pddl"].failures == 1
