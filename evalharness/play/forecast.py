"""How long a run still takes: the turns that its episodes may still have, at the pace of the last turns."""

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
class Forecast:
    clock: Callable[[], float] = lambda: time.monotonic()
    _limits: dict[EpisodeKey, float] = field(default_factory=dict)
    """Turns at most, of every unfinished episode."""
    _played: dict[EpisodeKey, int] = field(default_factory=dict)
    """Turns of the episodes in flight."""
    _latest: dict[EpisodeKey, float] = field(default_factory=dict)
    """When the last turn of each episode ended, or the episode began."""
    _paces: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(lambda: deque(maxlen=200)))
    """Family -> seconds of its last turns."""
    _shown: float = math.inf

    def expect(self, limits: Mapping[EpisodeKey, float]) -> None:
        """Note the episodes to be played now, and their turns at most."""
        self._limits |= limits

    def begin(self, key: EpisodeKey) -> None:
        self._latest[key], self._played[key] = self.clock(), 0

    def turn(self, key: EpisodeKey) -> None:
        now = self.clock()
        self._paces[_family(key)].append(now - self._latest[key])
        self._played[key] += 1
        self._latest[key] = now

    def finish(self, key: EpisodeKey) -> None:
        self._limits.pop(key, None)
        self._played.pop(key, None)

    def seconds_left(self) -> float | None:
        """Return a bound that never grows; None while it is not known, and while the bound turns out too small."""
        families = {_family(key) for key in list(self._limits)}
        left = max(map(self._bound, families), default=math.inf)
        self._shown = min(self._shown, left)
        return self._shown if left < math.inf and left <= _TOLERANCE * self._shown else None

    def _bound(self, family: str) -> float:
        """Infinite before ten turns have been played. While episodes wait for a slot, the last one may begin when all
        others end, so its whole length counts besides (Graham's bound of list scheduling)."""
        left = {
            k: limit - self._played.get(k, 0)
            for k, limit in list(self._limits.items())
            if _family(k) == family
        }
        flying = [turns for key, turns in left.items() if key in self._played]
        if len(self._paces[family]) < 10 or not flying:
            return math.inf
        last = max((turns for key, turns in left.items() if key not in self._played), default=0.0)
        return max(sum(left.values()) / len(flying) + last, *flying) * fmean(list(self._paces[family]))


def _family(key: EpisodeKey) -> str:
    return key[0].partition("/")[0]
