"""What a run has done so far, for whoever shows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from evalharness.episode import Episode, Turn


@dataclass
class FamilyProgress:
    total: int
    done: int = 0
    """Episodes finished, those of earlier sessions included."""
    resumed: int = 0
    """Of these, finished in an earlier session."""
    successes: int = 0
    progress_sum: float = 0.0
    failures: int = 0
    """Episodes given up for an infrastructure failure."""
    running: int = 0


@dataclass
class Progress:
    families: Mapping[str, FamilyProgress]
    started: float = field(default_factory=time.monotonic)
    status: str = ""
    """One line on what is going on besides episodes: the server loading, a retry."""
    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    engine: Callable[[], str] = lambda: ""
    """One line on the concurrency and on what the model's server says of itself."""

    def count_turn(self, turn: Turn) -> None:
        self.turns += 1
        self.prompt_tokens += turn.prompt_tokens or 0
        self.completion_tokens += turn.completion_tokens or 0

    def count_episode(self, family: str, success: bool, progress: float, *, resumed: bool = False) -> None:
        counts = self.families[family]
        counts.done += 1
        counts.resumed += resumed
        counts.successes += success
        counts.progress_sum += progress

    def finish(self, episode: Episode) -> None:
        self.count_episode(episode.family, episode.success, episode.progress)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float | None:
        """At the pace of this session; None before anything has finished."""
        fresh = sum(f.done - f.resumed for f in self.families.values())
        left = sum(f.total - f.done - f.failures for f in self.families.values())
        return self.elapsed / fresh * left if fresh else None
