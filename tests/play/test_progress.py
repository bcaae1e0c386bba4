"""What a person who waits reads: how long it will still take at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from made_runs import made_episode, make_task

from evalharness.play.forecast import Forecast
from evalharness.play.progress import FamilyProgress, Progress

TURN = made_episode(make_task("pddl", 0), turns=1).turns[0]


@dataclass
class Simulation:
    """Episodes of at most 30 turns, played at so many slots on a clock of its own."""

    lengths: dict[tuple[str, int], int]
    """Turns that each episode will have."""
    slots: int
    turn_s: float
    now: float = 0.0
    seen: list[tuple[float, float | None]] = field(default_factory=list)
    """(time, seconds left as they were shown then)"""

    def play(self) -> float:
        """When it is over. Every turn of the episodes in flight takes as long."""
        forecast = Forecast(clock=lambda: self.now)
        forecast.expect(dict.fromkeys(self.lengths, 30.0))
        waiting = sorted(self.lengths, key=lambda key: -self.lengths[key])
        flight: dict[tuple[str, int], int] = {}
        while waiting or flight:
            while waiting and len(flight) < self.slots:
                forecast.begin(waiting[0])
                flight[waiting.pop(0)] = 0
            self.seen.append((self.now, forecast.seconds_left()))
            self.now += self.turn_s
            for key in list(flight):
                flight[key] += 1
                forecast.turn(key)
                if flight[key] == self.lengths[key]:
                    del flight[key]
                    forecast.finish(key)
        return self.now


def keys(family: str, lengths: Sequence[int]) -> dict[tuple[str, int], int]:
    return {(f"{family}/open/{index:03d}", 0): length for index, length in enumerate(lengths)}


CASES = {
    "one long episode at the end": Simulation(keys("pddl", [30] + [3] * 19), slots=20, turn_s=5.0),
    "two families, one quick": Simulation(keys("babyai", [4] * 8) | keys("sciworld", [30, 30]), slots=10, turn_s=5.0),
    "the last ones begin together": Simulation(keys("sciworld", [30] * 90), slots=64, turn_s=3.0),
    "many at few slots": Simulation(keys("pddl", [30] * 40), slots=4, turn_s=1.0),
    "half as long as the limit": Simulation(keys("pddl", [15] * 60), slots=6, turn_s=1.0),
    "five families, two slots": Simulation(
        {k: v for f in "abcde" for k, v in keys(f, [30] * 4).items()}, slots=2, turn_s=2.0
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_time_left_never_grows_and_is_never_exceeded(name: str) -> None:
    """It is "at most" so much as long as turns take as long as they did."""
    run = CASES[name]
    whole = run.play()
    shown = [(at, left) for at, left in run.seen if left is not None]
    assert shown
    assert [left for _, left in shown] == sorted((left for _, left in shown), reverse=True)
    for at, left in shown:
        assert left > 0.99 * (whole - at), f"{left:.0f} s left was said at {at:.0f} s of {whole:.0f} s"


def test_nothing_is_said_before_there_are_turns_and_after_the_last_episode() -> None:
    progress = Progress({"pddl": FamilyProgress(1)})
    key = ("pddl/agentboard/000", 0)
    progress.forecast.expect({key: 30.0})
    progress.begin_episode("pddl", key)
    assert progress.forecast.seconds_left() is None
    for _ in range(12):
        progress.count_turn(key, TURN)
    assert progress.forecast.seconds_left() is not None
    progress.give_up("pddl", *key)
    assert progress.forecast.seconds_left() is None
    assert progress.families["pddl"].failures == 1
