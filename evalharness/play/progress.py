"""Count a run's episodes, turns and tokens so far, for the progress display."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from evalharness.records.episode import Episode, Turn
from evalharness.records.store import EpisodeKey

_RECENT, _ENOUGH = 200, 20
"""The rate of turns is computed from the last `_RECENT` turns, if there are at least `_ENOUGH`."""


@dataclass
class FamilyProgress:
    total: int
    done: int = 0
    """Finished episodes, including the episodes of earlier sessions of the run."""
    successes: int = 0
    progress_sum: float = 0.0
    failures: int = 0
    """Episodes that were given up after failures of a server or a simulator."""
    running: int = 0


@dataclass
class Progress:
    families: Mapping[str, FamilyProgress]
    started: float = field(default_factory=time.monotonic)
    status: str = ""
    """One line on the latest event, such as the server's start or a retry."""
    warning: str = ""
    """One line on problems of the model's replies."""
    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    retries: int = 0
    """Requests that were repeated, for any reason."""
    refusals: int = 0
    """Requests that the server refused as too busy (429, 503)."""
    engine: Callable[[], str] = lambda: ""
    """Return a line on the requests in flight and the load of the model's server."""
    turns_left: dict[EpisodeKey, float] = field(default_factory=dict)
    """For each unfinished episode, the number of turns up to its turn limit."""
    turn_ends: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """Time (`time.monotonic`) of the end of each recent turn."""
    on_episode: Callable[[Episode], None] = lambda episode: None
    """Called with each finished episode."""

    def begin_episode(self, family: str) -> None:
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
        """Estimated seconds for the remaining turns, at the rate of the recent turns; None before `_ENOUGH` turns. The
        estimate assumes that episodes reach the turn limit, but the rate falls at the end: the errors partly cancel."""
        left = sum(list(self.turns_left.values()))
        if len(self.turn_ends) < _ENOUGH or not left:
            return None
        return left * (time.monotonic() - self.turn_ends[0]) / len(self.turn_ends)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started
