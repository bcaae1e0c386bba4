"""How long a run still takes: the turns that its episodes may still have, over the recent rate of turns."""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import fmean

from evalharness.records.store import EpisodeKey

_TOLERANCE = 1.1
"""A bound that is exceeded by more is not shown."""


@dataclass
class _Family:
    limits: dict[EpisodeKey, float] = field(default_factory=dict)
    """Turns at most, of every unfinished episode."""
    played: dict[EpisodeKey, int] = field(default_factory=dict)
    """Turns of the episodes in flight."""
    latest: dict[EpisodeKey, float] = field(default_factory=dict)
    """When the last turn of each episode in flight ended, or the episode began."""
    ends: deque[float] = field(default_factory=lambda: deque(maxlen=200))
    """When the last turns ended, the first episode's start before them."""
    lengths: deque[float] = field(default_factory=lambda: deque(maxlen=200))
    """Seconds of the last turns."""

    def seconds_left(self, now: float) -> float:
        """Infinite before ten turns have been played. While episodes wait for a slot, the last one may begin when all
        others end, so its whole length counts besides (Graham's bound of list scheduling)."""
        if len(self.lengths) < 10 or now == self.ends[0]:
            return math.inf
        left = {key: limit - self.played.get(key, 0) for key, limit in list(self.limits.items())}
        pace = fmean(self.lengths)
        longest = max((turns for key, turns in left.items() if key in self.played), default=0.0)
        last = max((turns for key, turns in left.items() if key not in self.played), default=0.0)
        together = sum(left.values()) * (now - self.ends[0]) / (len(self.ends) - 1)
        return max(together + last * pace, longest * pace)


@dataclass
class Forecast:
    clock: Callable[[], float] = lambda: time.monotonic()
    _families: dict[str, _Family] = field(default_factory=lambda: defaultdict(_Family))
    _shown: float = math.inf

    def expect(self, limits: Mapping[EpisodeKey, float]) -> None:
        """The episodes to be played now, and their turns at most."""
        for key in limits:
            self._of(key).limits[key] = limits[key]

    def begin(self, key: EpisodeKey) -> None:
        family, now = self._of(key), self.clock()
        family.latest[key], family.played[key] = now, 0
        family.ends = family.ends or deque([now], maxlen=200)

    def turn(self, key: EpisodeKey) -> None:
        family, now = self._of(key), self.clock()
        family.played[key] += 1
        family.ends.append(now)
        family.lengths.append(now - family.latest[key])
        family.latest[key] = now

    def finish(self, key: EpisodeKey) -> None:
        family = self._of(key)
        for values in (family.limits, family.played, family.latest):
            values.pop(key, None)

    def seconds_left(self) -> float | None:
        """Return a bound that never grows; None while it is not known, and while the bound turns out too small."""
        now, unfinished = self.clock(), [family for family in self._families.values() if family.limits]
        left = max((family.seconds_left(now) for family in unfinished), default=math.inf)
        self._shown = min(self._shown, left)
        return self._shown if left < math.inf and left <= _TOLERANCE * self._shown else None

    def _of(self, key: EpisodeKey) -> _Family:
        return self._families[key[0].partition("/")[0]]
