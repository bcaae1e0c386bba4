"""How long a model's episodes were in earlier runs on this machine, so that the longest start first.

Only the order of work depends on it, never a result. Kept in the user's cache; without it every episode is expected to
go to the turn limit.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from evalharness.base.paths import cache_folder, write_whole
from evalharness.base.reading import read_known
from evalharness.envs.base import EnvSpec, Task
from evalharness.records.episode import Episode

_SCHEMA = 2
"""1 held the oracle's and the random policy's episodes as well."""
_LIMIT = 20_000
"""Tasks remembered; the oldest go first."""
_NEW = 0.5
"""Weight of a new length against the remembered one: models change, the order of tasks hardly does."""


def history_path() -> Path:
    return cache_folder() / "history.json"


@dataclass
class History:
    """Turns by task content, CPU seconds of a turn by family."""

    turns: dict[str, float] = field(default_factory=dict)
    turn_cpu_s: dict[str, float] = field(default_factory=dict)
    turn_tokens: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Family -> tokens that a turn adds to the conversation, tokens of its reply."""
    pace: dict[str, float] = field(default_factory=dict)
    """Model's name -> turns a second of its last run."""

    @classmethod
    def load(cls, path: Path) -> History:
        """What is not readable is as good as nothing: it is only remembered, never needed."""
        data = read_known(path)
        try:
            return TypeAdapter(cls).validate_python(data) if data.get("schema") == _SCHEMA else cls()
        except ValueError:
            return cls()

    def expected_turns(self, task: Task, max_turns: int) -> float:
        return min(self.turns.get(_key(task), float(max_turns)), float(max_turns))

    def cpu_s(self, spec: EnvSpec) -> float:
        """CPU seconds of one turn: measured where it was, else as the environment's author states it."""
        return self.turn_cpu_s.get(spec.family, spec.worker.cost / 1000)

    def note_episode(self, task: Task, turns: int) -> None:
        key = _key(task)
        before = self.turns.pop(key, None)
        self.turns[key] = turns if before is None else _NEW * turns + (1 - _NEW) * before

    def note_cost(self, family: str, cpu_s: float, turns: int) -> None:
        if turns >= 100:
            self.turn_cpu_s[family] = cpu_s / turns

    def note_tokens(self, episode: Episode) -> None:
        """Where the server counts them."""
        first, last, count = episode.turns[0], episode.turns[-1], len(episode.turns)
        if count < 2 or first.prompt_tokens is None or last.prompt_tokens is None or episode.trims:
            return
        seen = ((last.prompt_tokens - first.prompt_tokens) / (count - 1), episode.completion_tokens / count)
        before = self.turn_tokens.get(episode.family, seen)
        self.turn_tokens[episode.family] = (
            0.1 * seen[0] + 0.9 * before[0],
            0.1 * seen[1] + 0.9 * before[1],
        )

    def note_pace(self, model: str, turns: int, seconds: float) -> None:
        if turns >= 100 and seconds > 0:
            self.pace[model] = turns / seconds

    def save(self, path: Path) -> None:
        """A cache that cannot be written is no reason to trouble anybody."""
        turns = dict(list(self.turns.items())[-_LIMIT:])
        data = {
            "schema": _SCHEMA,
            "turns": {key: round(value, 1) for key, value in turns.items()},
            "turn_cpu_s": {key: round(value, 6) for key, value in sorted(self.turn_cpu_s.items())},
            "turn_tokens": {
                key: [round(a, 1), round(b, 1)] for key, (a, b) in sorted(self.turn_tokens.items())
            },
            "pace": {key: round(value, 3) for key, value in list(self.pace.items())[-200:]},
        }
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(data), durable=False)


def _key(task: Task) -> str:
    return task.content_hash[:16]


def pool_sizes(cpu_s: Mapping[str, float], cores: int) -> dict[str, int]:
    """Worker processes by family to start with: the cores shared out by expected CPU time, at least one each."""
    whole = sum(cpu_s.values())
    return {
        family: max(1, min(cores, round(cores * seconds / whole) if whole else 1))
        for family, seconds in cpu_s.items()
    }
