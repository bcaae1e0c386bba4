"""Count what a run has done so far, for the progress display."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from evalharness.records.episode import Episode, Turn
from evalharness.records.store import EpisodeKey

_RECENT, _ENOUGH = 200, 20
"""Turns from which the rate is computed, at most and at least."""


@dataclass
class FamilyProgress:
    total: int
    done: int = 0
    """Episodes finished, including those of earlier sessions."""
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
    warning: str = ""
    """One line on what goes wrong with the model's replies."""
    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    retries: int = 0
    """Requests that were sent again, for any reason."""
    refusals: int = 0
    """Requests that the server refused as too busy (429, 503)."""
    engine: Callable[[], str] = lambda: ""
    """One line on the concurrency and on what the model's server says of itself."""
    turns_left: dict[EpisodeKey, float] = field(default_factory=dict)
    """Largest number of turns that each unfinished episode may still have."""
    turn_ends: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """End of each recent turn, of `time.monotonic`."""
    on_episode: Callable[[Episode], None] = lambda episode: None
    """Called with each finished episode."""

    def begin_episode(self, family: str, key: EpisodeKey) -> None:
        self.families[family].running += 1

    def end_episode(self, family: str) -> None:
        self.families[family].running -= 1

    def count_turn(self, key: EpisodeKey, turn: Turn) -> None:
        self.turns += 1
        self.prompt_tokens += turn.prompt_tokens or 0
        self.completion_tokens += turn.completion_tokens or 0
        self.turn_ends.append(time.monotonic())
        if key in self.turns_left:
            self.turns_left[key] = max(0.0, self.turns_left[key] - 1)

    def count_episode(self, family: str, success: bool, progress: float) -> None:
        counts = self.families[family]
        counts.done += 1
        counts.successes += success
        counts.progress_sum += progress

    def finish(self, episode: Episode) -> None:
        self.count_episode(episode.family, episode.success, episode.progress)
        self.turns_left.pop((episode.task_id, episode.sample), None)
        self.on_episode(episode)

    def give_up(self, family: str, task_id: str, sample: int) -> None:
        self.families[family].failures += 1
        self.turns_left.pop((task_id, sample), None)

    @property
    def seconds_left(self) -> float | None:
        """Return the turns left at the rate of the recent turns; None before there are enough of these. Episodes may
        end before their turn limit; the last episodes are slower together than many at once."""
        left = sum(list(self.turns_left.values()))
        if len(self.turn_ends) < _ENOUGH or not left:
            return None
        return left * (time.monotonic() - self.turn_ends[0]) / len(self.turn_ends)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started
