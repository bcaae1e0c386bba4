"""How a training went beside its evaluations: `training.jsonl` in the folder of a study.

| a line with | says |
|---|---|
| `counts` | a look at the environment server: its sums by family since it began, and the trainer's step where known |
| `reward` | what the trainer itself logged at a step |
| `run` | an evaluation that is complete, and where the training was when it began and when it ended |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from evalharness.base.reading import read_object
from evalharness.records.lines import read_lines
from evalharness.records.stored import Stored

TRAINING_LOG = "training.jsonl"
REWARD = "reward"
"""Measure, and column, of the training's own episodes in tables and plots."""
_AGAIN = "this part of the training's curve is lost"
Step = Annotated[int, Field(ge=0, lt=10**12)]
Sum = Annotated[float, Field(ge=-1e12, le=1e12)]


class Sums(Stored):
    """Of the episodes of a family that have ended since the server began."""

    episodes: Step
    turns: Step
    reward: Sum
    success: Sum
    progress: Sum


class Look(Stored):
    """The environment server at one moment."""

    time: float
    """Unix time."""
    started: float
    """When that server began (Unix time)."""
    step: Step | None = None
    """The trainer's, where its log was given."""
    counts: dict[str, Sums]


class Logged(Stored):
    """A step of the trainer's own log."""

    step: Step
    reward: Sum


class Evaluated(Stored):
    """One evaluation."""

    run: str
    began: Step
    """Step, or episodes served, when it began."""
    ended: Step | None
    """None where the training's server was gone by then."""


@dataclass(frozen=True)
class Window:
    """Training episodes between two looks, or a step of the trainer's log."""

    x: float
    """Its end: step, or episodes served."""
    episodes: int
    """1 for a step of the trainer's log."""
    reward: float
    """Mean of an episode."""


@dataclass(frozen=True)
class TrainingLog:
    windows: tuple[Window, ...] = ()
    evaluated: tuple[Evaluated, ...] = ()
    families: tuple[str, ...] = ()
    """That were trained on, as far as the environment server says."""
    last: Look | None = None
    episodes: int = 0
    """Served to the trainer in all, over restarts of the server."""

    def reward(self, after: float | None, until: float) -> float | None:
        """Mean of the training's episodes that ended after `after` and until `until`."""
        within = [w for w in self.windows if w.x <= until and (after is None or w.x > after)]
        total = sum(w.episodes for w in within)
        return sum(w.episodes * w.reward for w in within) / total if total else None


def read_training_log(folder: Path) -> TrainingLog:
    """Empty where there is none. Raises UserError on damage."""
    looks: list[Look] = []
    logged: dict[int, float] = {}
    evaluated: dict[str, Evaluated] = {}
    for line in read_lines(folder / TRAINING_LOG, _AGAIN, _read):
        match line:
            case Look():
                looks.append(line)
            case Logged():
                logged[line.step] = line.reward
            case Evaluated():
                evaluated[line.run] = line
    windows, episodes = _windows(looks)
    return TrainingLog(
        windows=tuple(windows) or tuple(Window(step, 1, logged[step]) for step in sorted(logged)),
        evaluated=tuple(evaluated.values()),
        families=tuple(sorted({f for look in looks for f, sums in look.counts.items() if sums.episodes})),
        last=looks[-1] if looks else None,
        episodes=episodes,
    )


def _read(raw: bytes) -> Look | Logged | Evaluated:
    value = read_object(raw)
    kind = Look if "counts" in value else Evaluated if "run" in value else Logged
    return kind.of(value)


def _windows(looks: Sequence[Look]) -> tuple[list[Window], int]:
    """(windows by x, episodes in all)"""
    found: dict[float, tuple[int, float]] = {}
    total = 0
    before: Look | None = None
    for look in looks:
        earlier = before if before is not None and before.started == look.started else None
        new, reward = _gained(earlier, look)
        before, total = look, total + new
        if new > 0:
            x = float(total if look.step is None else look.step)
            episodes, sum_ = found.get(x, (0, 0.0))
            found[x] = episodes + new, sum_ + reward
    return [Window(x, n, sum_ / n) for x, (n, sum_) in sorted(found.items())], total


def _gained(before: Look | None, now: Look) -> tuple[int, float]:
    """(episodes, their rewards) since `before`."""
    earlier = list(before.counts.values()) if before else []
    return (
        sum(s.episodes for s in now.counts.values()) - sum(s.episodes for s in earlier),
        sum(s.reward for s in now.counts.values()) - sum(s.reward for s in earlier),
    )
