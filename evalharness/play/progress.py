"""Count what a run has done so far, for the progress display."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from evalharness.play.forecast import Forecast
from evalharness.records.episode import Episode, Turn
from evalharness.records.store import EpisodeKey


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
    forecast: Forecast = field(default_factory=Forecast)
    on_episode: Callable[[Episode], None] = lambda episode: None
    """Called with each finished episode."""

    def begin_episode(self, family: str, key: EpisodeKey) -> None:
        self.families[family].running += 1
        self.forecast.begin(key)

    def end_episode(self, family: str) -> None:
        self.families[family].running -= 1

    def count_turn(self, key: EpisodeKey, turn: Turn) -> None:
        self.turns += 1
        self.prompt_tokens += turn.prompt_tokens or 0
        self.completion_tokens += turn.completion_tokens or 0
        self.forecast.turn(key)

    def count_episode(self, family: str, success: bool, progress: float) -> None:
        counts = self.families[family]
        counts.done += 1
        counts.successes += success
        counts.progress_sum += progress

    def finish(self, episode: Episode) -> None:
        self.count_episode(episode.family, episode.success, episode.progress)
        self.forecast.finish((episode.task_id, episode.sample))
        self.on_episode(episode)

    def give_up(self, family: str, task_id: str, sample: int) -> None:
        self.families[family].failures += 1
        self.forecast.finish((task_id, sample))

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started
