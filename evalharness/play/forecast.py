"""How long a run still takes: by family, from the turns of the episodes in flight and of those to come.

A rate over all turns so far says little near the end. Fast families are done first and many episodes were in flight
at once; what is left then is a few long episodes one after the other, which no number of others makes shorter. So
each family is counted by itself, and no family is done before its longest episode.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import fmean

from evalharness.records.store import EpisodeKey

_ENOUGH_TURNS = 10
"""Of a family, before its pace is more than its first reply and its environment's start."""
_PRIOR = 10
"""So many episodes of the expected length are counted beside the finished ones: the short ones finish first."""
_RECENT = 4
"""Turns of an episode by which its pace is measured: with fewer episodes in flight a server answers faster."""
_OVERTIME = 0.25
"""An episode that has outlived its expected length is expected to go on for this share of it."""


@dataclass
class _Running:
    began: float
    recent: deque[float]
    """When its last turns began and ended."""
    turns: int = 0


@dataclass
class _Family:
    waiting: dict[EpisodeKey, float] = field(default_factory=dict)
    """Expected turns of the episodes that are not finished, in flight or not."""
    running: dict[EpisodeKey, _Running] = field(default_factory=dict)
    played: int = 0
    """Turns of the episodes finished in this start."""
    expected: float = 0.0
    """What had been expected of them."""
    prior: float = 0.0
    most: int | None = None
    """Of its episodes can be in flight; None where nothing but the slots limits them."""
    turns: int = 0
    """All that were played, in flight or not."""
    episode_s: float = 0.0
    """Time that episodes were in flight which no longer are."""

    @property
    def is_known(self) -> bool:
        """Whether it has shown its own pace."""
        return self.turns >= min(_ENOUGH_TURNS, 2 * len(self.waiting))

    @property
    def stretch(self) -> float:
        """Played over expected turns: episodes to come are taken to last as much longer or shorter."""
        return (self.played + self.prior) / (self.expected + self.prior) if self.expected else 1.0

    @property
    def usual(self) -> float:
        """Played over expected turns of those that are finished."""
        return self.played / self.expected if self.expected else 1.0


def _family(key: EpisodeKey) -> str:
    return key[0].split("/")[0]


@dataclass
class Forecast:
    clock: Callable[[], float] = lambda: time.monotonic()
    _families: dict[str, _Family] = field(default_factory=dict)

    def expect(self, expected_turns: Mapping[EpisodeKey, float], most: Mapping[str, int] = {}) -> None:
        """The episodes to be played now; `most`: family -> episodes in flight, where its workers limit them."""
        self._families = {}
        for key, turns in expected_turns.items():
            name = _family(key)
            family = self._families.setdefault(name, _Family(most=most.get(name)))
            family.waiting[key] = max(turns, 1.0)
        for family in self._families.values():
            family.prior = _PRIOR * fmean(family.waiting.values())

    def begin(self, key: EpisodeKey) -> None:
        if (family := self._families.get(_family(key))) is not None:
            began = self.clock()
            family.running[key] = _Running(began, deque([began], maxlen=_RECENT + 1))

    def turn(self, key: EpisodeKey) -> None:
        if (family := self._families.get(_family(key))) is not None and key in family.running:
            family.running[key].turns += 1
            family.running[key].recent.append(self.clock())
            family.turns += 1

    def end(self, key: EpisodeKey) -> None:
        family = self._families.get(_family(key))
        if family is not None and (running := family.running.pop(key, None)) is not None:
            family.episode_s += self.clock() - running.began

    def finish(self, key: EpisodeKey, turns: int) -> None:
        family = self._families.get(_family(key))
        if family is not None and (expected := family.waiting.pop(key, None)) is not None:
            family.played += turns
            family.expected += expected

    def drop(self, key: EpisodeKey) -> None:
        if (family := self._families.get(_family(key))) is not None:
            family.waiting.pop(key, None)

    def partly(self, name: str) -> float:
        """What of a family's episodes in flight is played, in episodes; none counts as whole before it is finished."""
        family = self._families.get(name)
        if family is None:
            return 0.0
        now = list(family.running.items())  # the view looks from its own thread
        return sum(
            min(running.turns / (family.waiting.get(key, running.turns or 1) * family.stretch), 0.95)
            for key, running in now
        )

    @property
    def seconds_left(self) -> float | None:
        """All work over all slots, or the family that takes longest with all slots that it can have once others are
        done; None before the turns say anything, and while a family has just begun: the pace of fast ones once said
        7 s for minutes of a slow one."""
        unfinished = [family for family in self._families.values() if family.waiting]
        pace = self._overall_pace
        if not unfinished or pace is None or not all(f.is_known or not f.running for f in unfinished):
            return None
        slots = max(sum(len(family.running) for family in unfinished), 1)
        work = sum(self._work(family, pace) for family in unfinished) / slots
        alone = [self._alone(family, pace, min(slots, family.most or slots)) for family in unfinished]
        return max([work, *alone])

    def seconds_left_of(self, name: str) -> float | None:
        """With the slots that it has now, and never longer than the whole run: it has others' slots once they are done.
        None before turns say anything, and where nothing of the family is in flight."""
        family, pace = self._families.get(name), self._overall_pace
        if family is None or pace is None or not family.running:
            return None
        now, whole = self._alone(family, pace, len(family.running)), self.seconds_left
        return now if whole is None else min(now, whole)

    @property
    def _overall_pace(self) -> float | None:
        """Seconds a turn; None before there are enough turns of any family."""
        turns = sum(family.turns for family in self._families.values())
        episodes = sum(len(family.waiting) for family in self._families.values())
        if turns < min(_ENOUGH_TURNS, 2 * episodes) or not turns:
            return None
        return sum(self._episode_s(family) for family in self._families.values()) / turns

    def _episode_s(self, family: _Family) -> float:
        now = self.clock()
        return family.episode_s + sum(now - running.began for running in list(family.running.values()))

    def _family_pace(self, family: _Family, overall: float) -> float:
        return self._episode_s(family) / family.turns if family.turns >= _ENOUGH_TURNS else overall

    def _work(self, family: _Family, overall: float) -> float:
        """Seconds at one slot."""
        now, pace = self.clock(), self._family_pace(family, overall)
        return sum(
            self._turns_left(family, key) * self._pace(family.running.get(key), pace, now)
            for key in list(family.waiting)
        )

    def _alone(self, family: _Family, overall: float, slots: int) -> float:
        """With so many slots, and at least as long as its longest episode will be. Once it is alone that one will be no
        faster where nothing waits for the server, and as many times as there are episodes now where it is the limit:
        taken to be half of the way between the two."""
        now, pace = self.clock(), self._family_pace(family, overall)
        flight = max(sum(len(one.running) for one in self._families.values()), 1)
        longest = max(
            (
                self._turns_left(family, key) * self._pace(family.running.get(key), pace, now)
                for key in list(family.waiting)
            ),
            default=0.0,
        )
        return max(self._work(family, overall) / slots, longest * (1 + 1 / flight) / 2)

    @staticmethod
    def _turns_left(family: _Family, key: EpisodeKey) -> float:
        usual = expected = family.waiting.get(key, 0.0)
        running = family.running.get(key)
        played = 0 if running is None else running.turns
        if played < family.usual * expected:
            expected *= family.stretch
        # Else it has outlived those that are finished, and their length says nothing of it.
        return max(expected - played, _OVERTIME * usual)

    @staticmethod
    def _pace(running: _Running | None, usual: float, now: float) -> float:
        """Seconds a turn; an episode's own from its third turn on, of its last ones."""
        if running is None or running.turns < 3:
            return usual
        return (now - running.recent[0]) / (len(running.recent) - 1)
