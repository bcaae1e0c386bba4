"""Where the time goes: sums a family, kept while episodes are played."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CallTimes:
    """One call of a worker."""

    waited_s: float = 0.0
    """Until the worker had finished the calls of other episodes; never more than the call took, less `took_s`."""
    took_s: float = 0.0
    """In the simulator, as the worker itself measures it: no pipe and no event loop in between."""
    start_s: float = 0.0
    """Until the worker had started: its simulator's imports, a Java process."""


@dataclass
class FamilyTimes:
    """Seconds summed over the episodes of one family; together they are the episodes' wall time."""

    episodes: int = 0
    turns: int = 0
    wall_s: float = 0.0
    """From reset to the end, of every try: what a try that failed waited for is in the parts below, too."""
    model_s: float = 0.0
    """Waiting for the model's server to answer."""
    slot_s: float = 0.0
    """Waiting for a slot at the model: more episodes are in flight than requests allowed."""
    environment_s: float = 0.0
    """The simulator at work."""
    worker_s: float = 0.0
    """Waiting for the worker process, which was stepping another episode's environment."""
    start_s: float = 0.0
    """Waiting for the worker process to start."""

    @property
    def client_s(self) -> float:
        """The rest: the harness itself."""
        elsewhere = self.model_s + self.slot_s + self.environment_s + self.start_s + self.worker_s
        return max(0.0, self.wall_s - elsewhere)


_STEP = 1.05


@dataclass
class Latencies:
    """Reply times in 5 % steps: constant memory however many replies there are."""

    counts: dict[int, int] = field(default_factory=dict)
    total: int = 0

    def add(self, seconds: float) -> None:
        step = round(math.log(max(seconds, 1e-6), _STEP))
        self.counts[step] = self.counts.get(step, 0) + 1
        self.total += 1

    def quantile(self, share: float) -> float | None:
        """Seconds; None before the first reply."""
        passed = 0
        for step in sorted(self.counts):
            passed += self.counts[step]
            if passed >= share * self.total:
                return float(_STEP**step)
        return None
