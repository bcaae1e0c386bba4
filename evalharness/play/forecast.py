"""How long a run still takes: the turns that its episodes may still have, over the recent rate of turns."""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from evalharness.records.store import EpisodeKey


@dataclass
class _Family:
    limits: dict[EpisodeKey, float] = field(default_factory=dict)
    """Turns at most, of every unfinished episode."""
    began: dict[EpisodeKey, float] = field(default_factory=dict)
    played: dict[EpisodeKey, int] = field(default_factory=dict)
    times: deque[float] = field(default_factory=lambda: deque(maxlen=200))
    """When the last turns ended, the first episode's start before them."""

    def seconds_left(self, now: float) -> float:
        """Infinite before ten turns have been played."""
        if len(self.times) <= 10 or now == self.times[0]:
            return math.inf
        left = {key: limit - self.played.get(key, 0) for key, limit in list(self.limits.items())}
        paces = {key: (now - self.began[key]) / turns for key, turns in list(self.played.items()) if turns}
        longest = max((left[key] * pace for key, pace in paces.items() if key in left), default=0.0)
        return max(sum(left.values()) * (now - self.times[0]) / (len(self.times) - 1), longest)


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
        family.began[key], family.played[key] = now, 0
        family.times = family.times or deque([now], maxlen=200)

    def turn(self, key: EpisodeKey) -> None:
        self._of(key).played[key] += 1
        self._of(key).times.append(self.clock())

    def finish(self, key: EpisodeKey) -> None:
        self._of(key).limits.pop(key, None)
        self._of(key).played.pop(key, None)

    def seconds_left(self) -> float | None:
        """Never more than it was before; None while it is not known, and once it is twice what was shown."""
        now, unfinished = self.clock(), [family for family in self._families.values() if family.limits]
        left = max((family.seconds_left(now) for family in unfinished), default=math.inf)
        self._shown = min(self._shown, left)
        return self._shown if left < math.inf and left <= 2 * self._shown else None

    def _of(self, key: EpisodeKey) -> _Family:
        return self._families[key[0].partition("/")[0]]
