"""Compute behaviour figures with intervals from a stored run, and the differences between two runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evalharness import stats
from evalharness.base.errors import UserError
from evalharness.records.episode import Episode
from evalharness.records.manifest import Manifest
from evalharness.records.store import read_episodes, read_manifest
from evalharness.results.behaviour.figures import FIGURES, EpisodeFacts, Figure, count_all
from evalharness.results.behaviour.turns import action_reader, read_turns
from evalharness.results.scored_run import common_tasks, require_same_turns

ALL = "all"
"""Value of `family` in rows that cover all families."""
SCHEMA = 1

Counts = NDArray[np.float64]


@dataclass(frozen=True)
class BehaviourRow:
    """The value of a behaviour figure in one environment family, with its interval."""

    figure: str
    family: str
    """Name of a family, or `all` for all families together."""
    value: float
    low: float
    high: float
    """The 95 % interval over tasks is `low` to `high`."""
    n: int
    """Sum of the denominators: the number of turns, episodes or other items that `Figure.per` names."""


@dataclass(frozen=True)
class DifferenceRow:
    """The values of a behaviour figure in two runs, over the tasks of one family that both runs have played."""

    figure: str
    family: str
    baseline: float
    run: float
    difference: float
    """`run` minus `baseline`."""
    low: float
    high: float
    """The 95 % interval of `difference`, paired by task, is `low` to `high`."""
    n: int
    """Number of tasks of the family that both runs have played."""


@dataclass(frozen=True)
class RunBehaviour:
    """The counts of a run, from which rows and differences are computed."""

    folder: Path
    manifest: Manifest
    tasks: Mapping[str, Mapping[str, Counts]]
    """Family -> task id -> (numerator, denominator) of every figure, summed over the task's samples."""
    hashes: Mapping[str, str]
    """Task id -> hash of its content."""

    @property
    def name(self) -> str:
        return self.manifest.model_name

    @property
    def max_turns(self) -> int:
        return int(self.manifest.config.max_turns)

    def short_title(self, family: str) -> str:
        """Return a short title of the family: its first 4 letters if the environment is not installed."""
        from evalharness.envs import specs

        spec = specs().get(family)
        return spec.short_title if spec else str(self.manifest.titles.get(family, family))[:4]

    def strata(self, family: str) -> list[Counts]:
        families = list(self.tasks) if family == ALL else [family]
        return [np.stack(list(self.tasks[f].values())) for f in families]


class BehaviourCounter:
    """Counts the behaviour in a run's episodes; the caller adds one episode after the other."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._limits = manifest.turn_limits
        self._tells_stop = manifest.tells_stop
        self._tasks: dict[str, dict[str, Counts]] = {}
        self._hashes: dict[str, str] = {}

    def add(self, episode: Episode) -> None:
        turns = read_turns(episode, action_reader(episode.family, episode.perturbation, episode.words))
        facts = EpisodeFacts(
            episode, turns, self._limits.get(episode.family, self.manifest.config.max_turns), self._tells_stop
        )
        counts = np.array(count_all(facts), dtype=np.float64)
        tasks = self._tasks.setdefault(episode.family, {})
        tasks[episode.task_id] = tasks.get(episode.task_id, 0) + counts
        self._hashes[episode.task_id] = episode.task_hash

    def behaviour(self) -> RunBehaviour:
        """Return the counts of all added episodes. Raise UserError if no episode was added."""
        if not self._tasks:
            raise UserError(f"{self.folder} has no finished episode yet; repeat the command of the run")
        tasks = {family: dict(sorted(self._tasks[family].items())) for family in sorted(self._tasks)}
        return RunBehaviour(self.folder, self.manifest, tasks, self._hashes)


def load_behaviour(folder: Path) -> RunBehaviour:
    """Count the behaviour in a run folder. Raise UserError if `folder` has no run or no finished episode."""
    counter = BehaviourCounter(folder, read_manifest(folder))
    for episode in read_episodes(folder):
        counter.add(episode)
    return counter.behaviour()


def _families(tasks: Mapping[str, object]) -> list[str]:
    return [ALL, *tasks] if len(tasks) > 1 else list(tasks)


def behaviour_rows(run: RunBehaviour) -> list[BehaviourRow]:
    """Return a row for every figure of each family. If there are several families, also return rows for all families
    together. A figure has no row if its denominator is 0 (for example recovery in a family without an error)."""
    return [
        row for family in _families(run.tasks) for row in _rows(family, run.strata(family), run.max_turns)
    ]


def _rows(family: str, strata: Sequence[Counts], max_turns: int) -> Iterator[BehaviourRow]:
    values = stats.ratios(strata)
    lows, highs = _limits(strata, max_turns)
    bases = sum(stratum[..., 1].sum(axis=0) for stratum in strata)
    for i, figure in enumerate(FIGURES):
        if not np.isnan(values[i]):
            yield BehaviourRow(
                figure.name,
                family,
                float(values[i]),
                float(lows[i]),
                float(highs[i]),
                int(np.asarray(bases)[i]),
            )


def _limits(strata: Sequence[Counts], max_turns: int) -> tuple[Counts, Counts]:
    """Return the lower and upper ends of the figures' 95 % intervals. The method is the bootstrap, with two exceptions.
    A mean length uses `stats.mean_length_interval`. A share of 0 or 1 uses Wilson's interval, because resampling equal
    values gives an interval of width 0. The trials of Wilson's interval are the tasks whose denominator is not 0."""
    lows, highs = stats.bootstrap_ratios(strata)
    values = stats.ratios(strata)
    for i, figure in enumerate(FIGURES):
        if figure.is_length:
            lows[i], highs[i] = stats.mean_length_interval([s[:, i] for s in strata], max_turns)
        if figure.share and values[i] in (0.0, 1.0):
            trials = int(sum((stratum[:, i, 1] > 0).sum() for stratum in strata))
            low, high = stats.wilson(round(values[i] * trials), trials)
            lows[i], highs[i] = min(low, values[i]), max(high, values[i])  # rounding could exclude the value
    return lows, highs


def difference_rows(baseline: RunBehaviour, run: RunBehaviour) -> list[DifferenceRow]:
    """Return the difference in every figure that both runs have, over the tasks that both have played.

    Raise UserError if a task's content or the turn limits differ, because most figures depend on content and limit.
    """
    require_same_turns([baseline, run], "run one of them again with the --max-turns of the other")
    common = set(common_tasks(baseline, run))
    pairs = {
        family: ids
        for family, tasks in baseline.tasks.items()
        if (ids := [task_id for task_id in tasks if task_id in common])
    }
    if not pairs:
        raise UserError(f"{baseline.folder} and {run.folder} have no task in common")
    rows: list[DifferenceRow] = []
    for family in _families(pairs):
        chosen = {f: ids for f, ids in pairs.items() if family in (f, ALL)}
        first, second = (
            [np.stack([r.tasks[f][task_id] for task_id in ids]) for f, ids in chosen.items()]
            for r in (baseline, run)
        )
        rows += _differences(family, first, second, max(baseline.manifest.turn_limits.values()))
    return rows


def _differences(
    family: str, first: Sequence[Counts], second: Sequence[Counts], max_turns: int
) -> Iterator[DifferenceRow]:
    a, b = stats.ratios(first), stats.ratios(second)
    lows, highs = stats.bootstrap_ratios(first, second)
    one, two = _limits(first, max_turns), _limits(second, max_turns)
    for i, figure in enumerate(FIGURES):
        if np.isnan(a[i]) or np.isnan(b[i]):
            continue
        difference = b[i] - a[i]
        low, high = lows[i], highs[i]
        if figure.is_length or _nothing_varies(figure, a[i], b[i]):
            # Combine both intervals by MOVER: Zou & Donner, Statistics in Medicine 27 (2008) 1693.
            low = difference - np.hypot(b[i] - two[0][i], one[1][i] - a[i])
            high = difference + np.hypot(two[1][i] - b[i], a[i] - one[0][i])
        yield DifferenceRow(
            figure.name, family, float(a[i]), float(b[i]), float(difference), float(low), float(high),
            sum(len(stratum) for stratum in first),
        )  # fmt: skip


def _nothing_varies(figure: Figure, *values: float) -> bool:
    return figure.share and any(value in (0.0, 1.0) for value in values)
