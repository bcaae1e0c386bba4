"""What the server has served: episodes that ended and their sums, for whoever watches a training."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field


@dataclass
class FamilyCounts:
    """Sums since the server began. An episode that its client left after a turn counts with what it had reached; one
    whose simulator failed does not."""

    episodes: int = 0
    turns: int = 0
    reward: float = 0.0
    success: float = 0.0
    progress: float = 0.0


@dataclass
class Counts:
    started: float = field(default_factory=time.time)
    """Unix time: another one is another server, whose sums begin anew."""
    splits: dict[str, dict[str, FamilyCounts]] = field(default_factory=dict)

    def add(
        self, split: str, family: str, *, turns: int, reward: float, success: bool, progress: float
    ) -> None:
        sums = self.splits.setdefault(split, {}).setdefault(family, FamilyCounts())
        sums.episodes += 1
        sums.turns += turns
        sums.reward += reward
        sums.success += success
        sums.progress += progress

    def of(self, split: str) -> dict[str, dict[str, float]]:
        return {family: asdict(sums) for family, sums in sorted(self.splits.get(split, {}).items())}
