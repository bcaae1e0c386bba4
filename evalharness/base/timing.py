"""Measure the time of each family while episodes are played."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CallTimes:
    """Times of one call of a worker."""

    waited_s: float = 0.0
    """Seconds of waiting while the worker executes calls of other episodes; at most the call's time minus `took_s`."""
    took_s: float = 0.0
    """Seconds in the simulator, measured by the worker, without pipe and event loop."""
    start_s: float = 0.0
    """Seconds until the worker has started: its simulator's imports, a Java process."""


@dataclass
class FamilyTimes:
    """Seconds summed over the episodes of one family; the sum of the parts is the episodes' wall time."""

    episodes: int = 0
    turns: int = 0
    wall_s: float = 0.0
    """Seconds from reset to end, summed over all tries; the parts below also include failed tries."""
    model_s: float = 0.0
    """Seconds of waiting for the model's server."""
    slot_s: float = 0.0
    """Seconds of waiting for a free slot, if more episodes run than requests are allowed."""
    environment_s: float = 0.0
    """Seconds in the simulator."""
    worker_s: float = 0.0
    """Seconds of waiting while the worker process executes another episode's call."""
    start_s: float = 0.0
    """Seconds of waiting for the worker process to start."""

    @property
    def client_s(self) -> float:
        """The remaining seconds, spent in the harness itself."""
        parts = self.model_s + self.slot_s + self.environment_s + self.start_s + self.worker_s
        return max(0.0, self.wall_s - parts)


_STEP = 1.05


@dataclass
class Latencies:
    """A histogram of reply times in 5 % steps, with constant memory for any number of replies."""

    counts: dict[int, int] = field(default_factory=dict)
    total: int = 0

    def add(self, seconds: float) -> None:
        step = round(math.log(max(seconds, 1e-6), _STEP))
        self.counts[step] = self.counts.get(step, 0) + 1
        self.total += 1

    def quantile(self, share: float) -> float | None:
        """Return a quantile of the reply times in seconds; None before the first reply."""
        count = 0
        for step in sorted(self.counts):
            count += self.counts[step]
            if count >= share * self.total:
                return float(_STEP**step)
        return None
