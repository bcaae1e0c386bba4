"""What a person who waits reads: how far it is, and how long it will take yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from unittest.mock import Mock

import pytest
from made_runs import made_episode, make_task

from evalharness.play.forecast import Forecast
from evalharness.play.progress import FamilyProgress, Progress

TURN = made_episode(make_task("pddl", 0), turns=1).turns[0]


@dataclass
class Simulation:
    """Episodes played at so many slots, on a clock of its own."""

    lengths: dict[tuple[str, int], int]
    """Turns that each episode will have."""
    slots: int
    turn_s: float
    shared: bool = False
    """The server is the limit: a turn takes `turn_s` for each episode in flight."""
    now: float = 0.0
    seen: list[tuple[float, float | None]] = field(default_factory=list)
    """(time, seconds left as it was shown then)"""

    def play(self, expected: float, longest_first: bool = True) -> float:
        """When it is over. Every turn of the episodes in flight takes as long."""
        forecast = Forecast(clock=lambda: self.now)
        forecast.expect(dict.fromkeys(self.lengths, expected))
        waiting = sorted(self.lengths, key=lambda key: -self.lengths[key] if longest_first else key[1])
        flight: dict[tuple[str, int], int] = {}
        while waiting or flight:
            while waiting and len(flight) < self.slots:
                forecast.begin(waiting[0])
                flight[waiting.pop(0)] = 0
            self.seen.append((self.now, forecast.seconds_left))
            self.now += self.turn_s * (len(flight) if self.shared else 1)
            for key in list(flight):
                flight[key] += 1
                forecast.turn(key)
                if flight[key] == self.lengths[key]:
                    del flight[key]
                    forecast.finish(key, self.lengths[key])
                    forecast.end(key)
        return self.now


def keys(family: str, lengths: Sequence[int]) -> dict[tuple[str, int], int]:
    return {(f"{family}/open/{index:03d}", 0): length for index, length in enumerate(lengths)}


CASES = {
    "one long episode at the end": Simulation(keys("pddl", [30] + [3] * 19), slots=20, turn_s=5.0),
    "two families, one quick": Simulation(keys("babyai", [4] * 8) | keys("sciworld", [30, 30]), slots=10, turn_s=5.0),
    "many at few slots": Simulation(keys("pddl", [30] * 40), slots=4, turn_s=1.0),
    "half as long as expected": Simulation(keys("pddl", [15] * 60), slots=6, turn_s=1.0),
    "five families, two slots": Simulation(
        {k: v for f in "abcde" for k, v in keys(f, [30] * 4).items()}, slots=2, turn_s=2.0
    ),
}  # fmt: skip


def test_a_family_is_taken_to_get_the_slots_of_those_that_end_before_it() -> None:
    """With one of ten slots at first, a family was said to take ten times as long as it did."""
    run = Simulation(keys("babyai", [30] * 9) | keys("pddl", [29] * 91), slots=10, turn_s=1.0)
    whole = run.play(expected=30.0)
    for at, left in run.seen:
        assert left is None or left < 1.2 * (whole - at) + 15.0, f"{left} s left at {at} s of {whole} s"


def test_an_episode_is_taken_to_get_faster_as_others_end() -> None:
    """At a server at its limit the last of 20 were said to take five times as long as they did."""
    run = Simulation(keys("pddl", [30] * 4 + [6] * 16), slots=20, turn_s=0.5, shared=True)
    whole = run.play(expected=30.0)
    shown = [(at, left) for at, left in run.seen if at >= 60.0 + 4 * 2.0]
    assert len(shown) == 20
    for at, left in shown:
        assert left is not None
        assert (whole - at) / 2 < left < 1.2 * (whole - at) + 15.0, f"{left} s left at {at} s of {whole} s"


@pytest.mark.parametrize(("most", "rounds"), [(1, 19.5), (20, 5.25)])
def test_a_family_gets_no_more_slots_than_its_workers_hold(most: int, rounds: float) -> None:
    """Of 23 episodes of 30 turns four are in flight, one of them of the family with twenty."""
    clock = Mock(return_value=0.0)
    flight = [("sciworld/open/000", 0), *(("pddl/open/000", sample) for sample in range(3))]
    forecast = Forecast(clock=clock)
    others = {(f"sciworld/open/{index:03d}", 0): 30.0 for index in range(20)}
    forecast.expect(dict.fromkeys(flight, 30.0) | others, {"sciworld": most})
    for key in flight:
        forecast.begin(key)
    for turn in range(15):
        clock.return_value = turn + 1.0
        for key in flight:
            forecast.turn(key)
    assert forecast.seconds_left == pytest.approx(30.0 * rounds, rel=0.01)


@pytest.mark.parametrize("name", CASES)
def test_the_time_left_is_never_wrong_tenfold(name: str) -> None:
    """What was shown once stood at "about 9 s left" after 14 s of 150."""
    run = CASES[name]
    whole = run.play(expected=30.0)
    shown = [(at, left) for at, left in run.seen if left is not None and at < whole]
    assert len(shown) > len(run.seen) / 2
    for at, left in shown:
        assert left is not None
        assert left > 0.4 * (whole - at), f"{left:.0f} s left was said at {at:.0f} s of {whole:.0f} s"
        assert left < 4.0 * (whole - at) + 60.0, f"{left:.0f} s left was said at {at:.0f} s of {whole:.0f} s"


def test_nothing_is_said_before_there_are_turns_and_after_the_last_episode() -> None:
    forecast = Forecast(clock=lambda: 0.0)
    assert forecast.seconds_left is None
    forecast.expect({("pddl/open/000", 0): 30.0})
    forecast.begin(("pddl/open/000", 0))
    assert forecast.seconds_left is None
    forecast.turn(("pddl/open/000", 0))
    forecast.finish(("pddl/open/000", 0), 1)
    assert forecast.seconds_left is None


def test_a_bar_moves_with_turns_and_is_full_only_when_episodes_are_finished() -> None:
    task = make_task("pddl", 0)
    key = (task.id, 0)
    counts = FamilyProgress(2)
    progress = Progress({"pddl": counts})
    progress.forecast.expect({key: 30.0, ("pddl/agentboard/001", 0): 30.0})
    progress.begin_episode("pddl", key)
    assert counts.share == 0.0
    for _ in range(15):
        progress.count_turn(key, TURN)
    assert counts.share == pytest.approx(0.5)
    for _ in range(60):
        progress.count_turn(key, TURN)
    assert counts.share < 1.0
    progress.end_episode("pddl", key)
    assert counts.share == 0.0, "an episode that broke is played anew"


def test_episodes_given_up_and_finished_are_not_waited_for() -> None:
    progress = Progress({"pddl": FamilyProgress(1)})
    progress.forecast.expect({("pddl/agentboard/000", 0): 30.0})
    progress.begin_episode("pddl", ("pddl/agentboard/000", 0))
    for _ in range(12):
        progress.count_turn(("pddl/agentboard/000", 0), TURN)
    assert progress.forecast.seconds_left is not None
    progress.give_up("pddl", "pddl/agentboard/000", 0)
    assert progress.forecast.seconds_left is None
    assert progress.families["pddl"].failures == 1
