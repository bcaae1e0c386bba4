"""Stored runs -> behaviour figures with intervals; two runs -> their differences."""

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
from evalharness.results.behaviour.figures import FIGURES, Figure, Read, count_all
from evalharness.results.behaviour.turns import action_reader, read_turns
from evalharness.results.scored_run import common_tasks, require_same_turns

ALL = "all"
"""The family of rows over all families together."""
SCHEMA = 1

Counts = NDArray[np.float64]


@dataclass(frozen=True)
class BehaviourRow:
    """One figure of one family."""

    figure: str
    family: str
    """A family, or `all`."""
    value: float
    low: float
    high: float
    """Ends of the 95 % interval over tasks."""
    n: int
    """Number of counted items; `Figure.per` names them."""


@dataclass(frozen=True)
class DifferenceRow:
    """One figure of one family in two runs, over the tasks that both have played."""

    figure: str
    family: str
    baseline: float
    run: float
    difference: float
    """run - baseline."""
    low: float
    high: float
    """Ends of the 95 % interval of the difference, paired by task."""
    n: int
    """Paired tasks of the family; `n` of a `BehaviourRow` counts turns or episodes."""


@dataclass(frozen=True)
class RunBehaviour:
    """The counts of a run, from which rows and differences are computed."""

    folder: Path
    manifest: Manifest
    tasks: Mapping[str, Mapping[str, Counts]]
    """Family -> task id -> both counts of every figure, summed over the task's samples; sorted."""
    hashes: Mapping[str, str]
    """Task id -> hash of its content."""

    @property
    def name(self) -> str:
        return self.manifest.model_name

    @property
    def max_turns(self) -> int:
        return int(self.manifest.config.max_turns)

    def short_title(self, family: str) -> str:
        """For a narrow column, as the installed environment says; the recorded title's beginning for another."""
        from evalharness.envs import specs

        spec = specs().get(family)
        return spec.short_title if spec else str(self.manifest.titles.get(family, family))[:4]

    def strata(self, family: str) -> list[Counts]:
        families = list(self.tasks) if family == ALL else [family]
        return [np.stack(list(self.tasks[f].values())) for f in families]


class Behaving:
    """The behaviour of a run, counted as somebody reads its episodes."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._limits = manifest.turn_limits
        self._tells_stop = manifest.tells_stop
        self._found: dict[str, dict[str, Counts]] = {}
        self._hashes: dict[str, str] = {}

    def add(self, episode: Episode) -> None:
        turns = read_turns(episode, action_reader(episode.family, episode.perturbation, episode.words))
        read = Read(
            episode, turns, self._limits.get(episode.family, self.manifest.config.max_turns), self._tells_stop
        )
        counts = np.array(count_all(read), dtype=np.float64)
        tasks = self._found.setdefault(episode.family, {})
        tasks[episode.task_id] = tasks.get(episode.task_id, 0) + counts
        self._hashes[episode.task_id] = episode.task_hash

    def behaviour(self) -> RunBehaviour:
        """Of all that were added. Raises UserError where there are none."""
        if not self._found:
            raise UserError(
                f"{self.folder} holds no finished episode yet; the command that began it continues it"
            )
        tasks = {family: dict(sorted(self._found[family].items())) for family in sorted(self._found)}
        return RunBehaviour(self.folder, self.manifest, tasks, self._hashes)


def load_behaviour(folder: Path) -> RunBehaviour:
    """Raises UserError when `folder` holds no run, or no finished episode."""
    behaving = Behaving(folder, read_manifest(folder))
    for episode in read_episodes(folder):
        behaving.add(episode)
    return behaving.behaviour()


def _families(tasks: Mapping[str, object]) -> list[str]:
    return [ALL, *tasks] if len(tasks) > 1 else list(tasks)


def behaviour_rows(run: RunBehaviour) -> list[BehaviourRow]:
    """Every figure of all families together (where there are several) and of each; a figure of which a family has
    nothing to count (recovery where there was no error) has no row."""
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
    """Bootstrap limits, of a mean length `stats.mean_length_interval`; for a share of which nothing varies between
    tasks (no turn has it, or every turn), Wilson's with as many trials as tasks have something to count: resampling
    what is all the same gives no width at all."""
    lows, highs = stats.bootstrap_ratios(strata)
    values = stats.ratios(strata)
    for i, figure in enumerate(FIGURES):
        if figure.is_length:
            lows[i], highs[i] = stats.mean_length_interval([s[:, i] for s in strata], max_turns)
        if figure.share and values[i] in (0.0, 1.0):
            trials = int(sum((stratum[:, i, 1] > 0).sum() for stratum in strata))
            low, high = stats.wilson(round(values[i] * trials), trials)
            lows[i], highs[i] = min(low, values[i]), max(high, values[i])  # to the last bit
    return lows, highs


def difference_rows(baseline: RunBehaviour, run: RunBehaviour) -> list[DifferenceRow]:
    """Every figure that both runs have, over the tasks that both have played.

    Raises UserError where the tasks or the turn limit are not the same: most figures depend on them.
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
            # Limits of a difference from those of both (MOVER): Zou & Donner, Statistics in Medicine 27 (2008) 1693.
            low = difference - np.hypot(b[i] - two[0][i], one[1][i] - a[i])
            high = difference + np.hypot(two[1][i] - b[i], a[i] - one[0][i])
        yield DifferenceRow(
            figure.name, family, float(a[i]), float(b[i]), float(difference), float(low), float(high),
            sum(len(stratum) for stratum in first),
        )  # fmt: skip


def _nothing_varies(figure: Figure, *values: float) -> bool:
    return figure.share and any(value in (0.0, 1.0) for value in values)
