"""How much of a family a run has played: tasks, and attempts at each. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Played:
    """Rates and intervals are over tasks, so tasks are what is counted; attempts stand beside them."""

    tasks: int
    """With at least one finished attempt."""
    of: int
    """Tasks of the whole family."""
    episodes: int
    """Finished attempts, each counted once."""
    samples: int
    """Attempts that each task is to have."""

    @property
    def complete(self) -> bool:
        """Every attempt at every task of the family is there."""
        return self.tasks == self.of and self.episodes == self.of * self.samples

    def __str__(self) -> str:
        """`112`, `15/112`, `15/112 x 4`."""
        return self._share + (f" x {self.samples}" if self.samples > 1 else "")

    @property
    def _share(self) -> str:
        return str(self.tasks) if self.tasks == self.of else f"{self.tasks}/{self.of}"

    @property
    def described(self) -> str:
        """`15/112 tasks`, `15/112 tasks x 4`; `15/112 tasks x 4 (57 of 60 attempts)` where some are missing."""
        text = f"{self._share} tasks" + (f" x {self.samples}" if self.samples > 1 else "")
        wanted = self.tasks * self.samples
        return text if self.episodes == wanted else f"{text} ({self.episodes} of {wanted} attempts)"
