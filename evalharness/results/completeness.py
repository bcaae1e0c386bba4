"""Count how many tasks of a family a run has played, and how many attempts at each task."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Played:
    """The numbers of tasks and attempts of a family that a run has played."""

    tasks: int
    """Number of tasks with at least one finished attempt."""
    of: int
    """Number of tasks in the whole family."""
    episodes: int
    """Number of finished attempts."""
    samples: int
    """Number of attempts that each task should have."""

    @property
    def complete(self) -> bool:
        """Whether every attempt at every task of the family is finished."""
        return self.tasks == self.of and self.episodes == self.of * self.samples

    def __str__(self) -> str:
        """Return the played tasks, for example `112`, `15/112` or `15/112 x 4` (four attempts per task)."""
        return self._share + (f" x {self.samples}" if self.samples > 1 else "")

    @property
    def _share(self) -> str:
        return str(self.tasks) if self.tasks == self.of else f"{self.tasks}/{self.of}"

    @property
    def description(self) -> str:
        """The text `15/112 tasks x 4`, or `15/112 tasks x 4 (57 of 60 attempts)` if attempts are missing."""
        text = f"{self._share} tasks" + (f" x {self.samples}" if self.samples > 1 else "")
        wanted = self.tasks * self.samples
        return text if self.episodes == wanted else f"{text} ({self.episodes} of {wanted} attempts)"
