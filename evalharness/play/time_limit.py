"""The time limit of a run (`--time-limit`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TimeLimit:
    seconds: float | None
    clock: Callable[[], float] = time.monotonic
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float | None:
        """Seconds left; None without a limit."""
        return None if self.seconds is None else max(0.0, self.began + self.seconds - self.clock())

    def stop_reason(self) -> str | None:
        """Return why no more episodes are played; None while time is left."""
        if self.left is None or self.left > 0:
            return None
        return f"the time limit of {self.seconds:g} s (--time-limit) is reached"


NO_LIMIT = TimeLimit(None)
