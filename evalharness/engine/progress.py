"""What a run has done so far, for whoever shows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from evalharness.records.episode import Episode, Turn

_ENOUGH_TURNS = 20
_PRIOR = 10
"""So many episodes of the expected length are counted beside the finished ones: the short ones finish first."""


@dataclass
class FamilyProgress:
    total: int
    done: int = 0
    """Episodes finished, those of earlier sessions included."""
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
    _to_play: dict[tuple[str, int], float] = field(default_factory=dict)
    """Expected turns of the episodes that are not finished, by (task, sample)."""
    _played: int = 0
    """Turns of the episodes finished in this session."""
    _expected: float = 0.0
    """What had been expected of them."""
    _prior: float = 1.0

    def count_turn(self, turn: Turn) -> None:
        self.turns += 1
        self.prompt_tokens += turn.prompt_tokens or 0
        self.completion_tokens += turn.completion_tokens or 0

    def count_episode(self, family: str, success: bool, progress: float) -> None:
        counts = self.families[family]
        counts.done += 1
        counts.successes += success
        counts.progress_sum += progress

    def finish(self, episode: Episode) -> None:
        self.count_episode(episode.family, episode.success, episode.progress)
        if expected := self._to_play.pop((episode.task_id, episode.sample), None):
            self._played += len(episode.turns)
            self._expected += expected

    def give_up(self, family: str, task_id: str, sample: int) -> None:
        self.families[family].failures += 1
        self._to_play.pop((task_id, sample), None)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def expect(self, expected_turns: Mapping[tuple[str, int], float]) -> None:
        """The episodes to be played now, by (task, sample)."""
        self._to_play = dict(expected_turns)
        self._prior = _PRIOR * sum(self._to_play.values()) / max(len(self._to_play), 1)

    @property
    def seconds_left(self) -> float | None:
        """At the turns per second of this session; None before they say anything.

        Episodes last longer or shorter than expected; those to come are taken to do so as the finished ones do.
        """
        if self.turns < _ENOUGH_TURNS or not self._to_play:
            return None
        stretch = (self._played + self._prior) / (self._expected + self._prior)
        left = sum(self._to_play.values()) * stretch - (self.turns - self._played)
        return max(left, 0.0) * self.elapsed / self.turns
