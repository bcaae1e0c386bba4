"""Load the scores of a stored run, and check that runs are comparable."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from evalharness.base.errors import UserError
from evalharness.base.grouping import group_by_key
from evalharness.records.manifest import Identity, Manifest
from evalharness.records.store import read_episodes, read_manifest
from evalharness.records.summary import HeldOut
from evalharness.results.completeness import Played
from evalharness.results.run_labels import model_name
from evalharness.results.score import EpisodeScore, count_played, group_by_family, held_out_score
from evalharness.results.task_range import mark_changed


@dataclass(frozen=True)
class TaskScore:
    """Success and progress of one task: the mean over its samples, as fractions 0..1."""

    task_id: str
    task_hash: str
    family: str
    samples: int
    success: float
    progress: float
    kind: str
    attempts: Mapping[str, tuple[float, ...]]
    """`success` or `progress` -> value of each sample."""


@dataclass(frozen=True)
class ScoredRun:
    folder: Path
    manifest: Manifest
    scores: tuple[EpisodeScore, ...]
    """Scores of the run's episodes, sorted by task and sample."""
    repeats: tuple[ScoredRun, ...] = ()
    """The runs that were joined into this run as repeats; otherwise empty (`evalharness.results.repeats`)."""
    trainings: tuple[ScoredRun, ...] = ()
    """If this run is a mean over training seeds, the single runs; otherwise empty (`evalharness.results.trainings`)."""

    @property
    def name(self) -> str:
        return model_name(self.manifest)

    @property
    def identity(self) -> Identity:
        """Identity of the run; for a mean over trainings, the identity of the first run in `trainings`."""
        return (self.trainings[0] if self.trainings else self).manifest.identity

    @cached_property
    def model_key(self) -> str:
        """Text that identifies the model. The name is not enough: two checkpoints may have the same folder name."""
        return json.dumps([self.name, self.identity.model], sort_keys=True)

    @cached_property
    def config(self) -> Mapping[str, Any]:
        return self.manifest.options

    @property
    def samples(self) -> int:
        """Number of attempts that each task should have."""
        return self.manifest.config.samples

    @cached_property
    def by_family(self) -> Mapping[str, list[EpisodeScore]]:
        return group_by_family(self.scores)

    @cached_property
    def played(self) -> Mapping[str, Played]:
        """Family -> numbers of its tasks and attempts that were played."""
        expected = self.manifest.expected.items()
        return {
            family: count_played(self.by_family.get(family, ()), n, self.samples) for family, n in expected
        }

    @property
    def incomplete(self) -> str:
        """The families with missing tasks or attempts, for example `BabyAI 10/112 tasks`; "" if nothing is missing."""
        parts = self.played.items()
        return ", ".join(f"{self.titles.get(f, f)} {p.description}" for f, p in parts if not p.complete)

    @property
    def limit_notes(self) -> list[str]:
        """A list with the warning about `--limit`; empty for a run without `--limit`."""
        limit = self.manifest.config.limit
        note = f"--limit {limit}: only the first tasks of each family; not representative (--draw is)"
        return [note] if limit else []

    @cached_property
    def held_out(self) -> tuple[HeldOut | None, str | None]:
        """(held-out score, None), or (None, reason why there is no score)."""
        return held_out_score(self.by_family, self.manifest.held_out, self.samples)

    @property
    def suite(self) -> str:
        """Name of the suite with its seed: `agentboard`, `open`, or `open, seed 3`."""
        return self.manifest.suite_name

    @property
    def perturbation(self) -> str | None:
        return self.manifest.config.perturb

    @property
    def turn_limits(self) -> Mapping[str, int]:
        return self.manifest.turn_limits

    @property
    def max_turns(self) -> int:
        """The largest turn limit of the families."""
        return max(self.turn_limits.values())

    @property
    def labels(self) -> Mapping[str, str]:
        """The user's labels (`--label`). If a key was given twice, the later value counts."""
        return self.manifest.user_labels

    @property
    def agent(self) -> str:
        """The agent's name and options, or the name of the protocol if the run follows another group's protocol."""
        return self.manifest.config.played_as

    @property
    def titles(self) -> Mapping[str, str]:
        return self.manifest.titles

    @cached_property
    def tasks(self) -> Mapping[str, TaskScore]:
        """Task id -> success and progress of the task, sorted by id."""
        return {
            task_id: TaskScore(
                task_id=task_id,
                task_hash=group[0].task_hash,
                family=group[0].family,
                samples=len(group),
                success=sum(s.success for s in group) / len(group),
                progress=sum(s.progress for s in group) / len(group),
                kind=group[0].kind,
                attempts={
                    "success": tuple(float(s.success) for s in group),
                    "progress": tuple(s.progress for s in group),
                },
            )
            for task_id, group in group_by_key((score.task_id, score) for score in self.scores).items()
        }

    @cached_property
    def task_labels(self) -> Mapping[str, str]:
        """Family -> source of its subgoal labels; `changed` is added if its tasks differ from the published tasks."""
        return mark_changed(self.manifest.labels, self.hashes.items())

    @cached_property
    def hashes(self) -> Mapping[str, str]:
        """Task id -> hash of its content."""
        return {task_id: task.task_hash for task_id, task in self.tasks.items()}

    @cached_property
    def family_tasks(self) -> Mapping[str, list[TaskScore]]:
        """Family -> its tasks, sorted."""
        return group_by_key((task.family, task) for task in self.tasks.values())


def load_scored_run(folder: Path) -> ScoredRun:
    """Load the scores of a run folder. Raise UserError if `folder` has no run or no finished episode."""
    manifest = read_manifest(folder)
    return scored_run(folder, manifest, [EpisodeScore.of(episode) for episode in read_episodes(folder)])


def scored_run(folder: Path, manifest: Manifest, scores: Sequence[EpisodeScore]) -> ScoredRun:
    """Sort the scores, and make a run from them. Raise UserError if there are no scores."""
    if not scores:
        raise UserError(f"{folder} has no finished episode yet; repeat the command of the run")
    return ScoredRun(folder, manifest, tuple(sorted(scores, key=lambda s: (s.family, s.task_id, s.sample))))


def of_family(run: ScoredRun, family: str) -> ScoredRun:
    """Return the part of a run that belongs to one family. Raise UserError if the run has no episode of the family."""
    if not (scores := tuple(score for score in run.scores if score.family == family)):
        raise UserError(f"{run.folder} has no episode of {family}; remove this folder from the command")
    return replace(run, scores=scores, manifest=part_of(run.manifest, family))


def part_of(manifest: Manifest, family: str) -> Manifest:
    """Return the manifest restricted to one family; without any family if the run does not play `family`."""
    parts = ("counts", "expected", "titles", "labels", "draw")
    kept = {part: {f: of for f, of in getattr(manifest, part).items() if f == family} for part in parts}
    return manifest.model_copy(update={**kept, "held_out": {}})


def require_same(
    runs: Sequence[ScoredRun], what: str, value: Callable[[ScoredRun], object], advice: str
) -> None:
    """Raise UserError if `value` differs between runs. `what`: name of this value in the message."""
    for run in runs[1:]:
        if value(run) != value(runs[0]):
            raise UserError(
                f"{runs[0].folder} and {run.folder} differ in {what} ({value(runs[0])} and {value(run)}); {advice}"
            )


class Comparable(Protocol):
    """A run whose tasks can be matched with those of another run."""

    @property
    def folder(self) -> Path: ...
    @property
    def manifest(self) -> Manifest: ...
    @property
    def hashes(self) -> Mapping[str, str]: ...


def common_tasks(one: Comparable, other: Comparable) -> list[str]:
    """Return the ids of the tasks in both runs, in the order of `one`. Raise UserError if a task's content differs."""
    common = [task_id for task_id in one.hashes if task_id in other.hashes]
    for task_id in common:
        if one.hashes[task_id] != other.hashes[task_id]:
            raise UserError(
                f"{task_id} is not the same task in {one.folder} and {other.folder} (its text, files or subgoal labels "
                "have changed); play the older run again"
            )
    return common


def require_same_turns(runs: Sequence[Comparable], advice: str) -> None:
    """Raise UserError if a run's turn limit in some family differs from the first run's. If two runs have no family in
    common, compare their largest limits."""
    first, *others = [(run.folder, run.manifest.turn_limits) for run in runs]
    for folder, limits in others:
        common = sorted(first[1].keys() & limits.keys())
        pairs = [(first[1][f], limits[f]) for f in common] or [(max(first[1].values()), max(limits.values()))]
        for one, other in pairs:
            if one != other:
                raise UserError(f"{first[0]} and {folder} differ in turn limit ({one} and {other}); {advice}")
