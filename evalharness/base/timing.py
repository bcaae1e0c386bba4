"""Time spent per family, summed while episodes are played."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CallTimes:
    """Times of one call of a worker."""

    waited_s: float = 0.0
    """Waiting for the worker to finish other episodes' calls; at most the call's time minus `took_s`."""
    took_s: float = 0.0
    """Time in the simulator, measured by the worker itself, without pipe and event loop."""
    start_s: float = 0.0
    """Waiting for the worker to start: its simulator's imports, a Java process."""


@dataclass
class FamilyTimes:
    """Seconds summed over the episodes of one family; the parts add up to the episodes' wall time."""

    episodes: int = 0
    turns: int = 0
    wall_s: float = 0.0
    """From reset to the end, of every try; the parts below also include the waiting of failed tries."""
    model_s: float = 0.0
    """Waiting for the model's server to answer."""
    slot_s: float = 0.0
    """Waiting for a free request slot: more episodes are running than requests allowed."""
    environment_s: float = 0.0
    """Time in the simulator."""
    worker_s: float = 0.0
    """Waiting for the worker process while it steps another episode's environment."""
    start_s: float = 0.0
    """Waiting for the worker process to start."""

    @property
    def client_s(self) -> float:
        """Return the rest of the time: the harness itself."""
        elsewhere = self.model_s + self.slot_s + self.environment_s + self.start_s + self.worker_s
        return max(0.0, self.wall_s - elsewhere)


_STEP = 1.05


@dataclass
class Latencies:
    """Reply times in 5 % steps: constant memory for any number of replies."""

    counts: dict[int, int] = field(default_factory=dict)
    total: int = 0

    def add(self, seconds: float) -> None:
        step = round(math.log(max(seconds, 1e-6), _STEP))
        self.counts[step] = self.counts.get(step, 0) + 1
        self.total += 1

    def quantile(self, share: float) -> float | None:
        """Return seconds; None before the first reply."""
        passed = 0
        for step in sorted(self.counts):
            passed += self.counts[step]
            if passed >= share * self.total:
                return float(_STEP**step)
        return None
