"""Load the scores of a stored run, for tables over several runs."""

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
    """A task's mean over its samples, fractions 0..1."""

    task_id: str
    task_hash: str
    family: str
    samples: int
    success: float
    progress: float
    kind: str
    attempts: Mapping[str, tuple[float, ...]]
    """`success`, `progress` -> the value of each sample."""


@dataclass(frozen=True)
class ScoredRun:
    folder: Path
    manifest: Manifest
    scores: tuple[EpisodeScore, ...]
    """Sorted by task and sample."""
    repeats: tuple[ScoredRun, ...] = ()
    """If repeats were joined into this run: the single runs (`evalharness.results.repeats`)."""
    trainings: tuple[ScoredRun, ...] = ()
    """If this run is a mean over trainings: their runs (`evalharness.results.trainings`)."""

    @property
    def name(self) -> str:
        return model_name(self.manifest)

    @property
    def identity(self) -> Identity:
        """Identity of the run; for a mean over trainings, the identity of the first training's run."""
        return (self.trainings[0] if self.trainings else self).manifest.identity

    @cached_property
    def model_key(self) -> str:
        """Key of the model. A name alone is not enough: two checkpoints may have the same folder name."""
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
        """Family -> the part of it that was played."""
        expected = self.manifest.expected.items()
        return {
            family: count_played(self.by_family.get(family, ()), n, self.samples) for family, n in expected
        }

    @property
    def incomplete(self) -> str:
        """The incomplete families, for example `BabyAI 10/112 tasks`; "" if every played family is complete."""
        parts = self.played.items()
        return ", ".join(f"{self.titles.get(f, f)} {p.described}" for f, p in parts if not p.complete)

    @property
    def limited(self) -> list[str]:
        """The note about a run with `--limit`; empty for other runs."""
        limit = self.manifest.config.limit
        note = f"--limit {limit}: only the first tasks of each family; not representative (--draw is)"
        return [note] if limit else []

    @cached_property
    def held_out(self) -> tuple[HeldOut | None, str | None]:
        """The held-out score, or the reason why it is withheld."""
        return held_out_score(self.by_family, self.manifest.held_out, self.samples)

    @property
    def suite(self) -> str:
        """`agentboard`, `open`, or `open, seed 3`."""
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
        """The agent's name and options, or the name of another group's protocol."""
        return self.manifest.config.played_as

    @property
    def titles(self) -> Mapping[str, str]:
        return self.manifest.titles

    @cached_property
    def tasks(self) -> Mapping[str, TaskScore]:
        """Task id -> mean over its samples, sorted by id."""
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
        """Family -> source of its labels, with `changed` if its tasks are not the published ones."""
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
    """Make a run of sorted scores. Raise UserError if there are no scores."""
    if not scores:
        raise UserError(f"{folder} holds no finished episode yet; the command that began it continues it")
    return ScoredRun(folder, manifest, tuple(sorted(scores, key=lambda s: (s.family, s.task_id, s.sample))))


def of_family(run: ScoredRun, family: str) -> ScoredRun:
    """Return the part of a run that belongs to one family. Raise UserError if the run has no episode of the family."""
    if not (scores := tuple(score for score in run.scores if score.family == family)):
        raise UserError(f"{run.folder} has no episode of {family}; leave the run out")
    return replace(run, scores=scores, manifest=part_of(run.manifest, family))


def part_of(manifest: Manifest, family: str) -> Manifest:
    """Return the manifest with only this family; with no family if the run does not play it."""
    parts = ("counts", "expected", "titles", "labels", "draw")
    kept = {part: {f: of for f, of in getattr(manifest, part).items() if f == family} for part in parts}
    return manifest.model_copy(update={**kept, "held_out": {}})


def require_same(
    runs: Sequence[ScoredRun], what: str, value: Callable[[ScoredRun], object], advice: str
) -> None:
    """Raise UserError if two runs differ in `what`."""
    for run in runs[1:]:
        if value(run) != value(runs[0]):
            raise UserError(
                f"{runs[0].folder} and {run.folder} differ in {what} ({value(runs[0])} and {value(run)}); {advice}"
            )


class Comparable(Protocol):
    """The attributes of a run that a comparison task by task needs."""

    @property
    def folder(self) -> Path: ...
    @property
    def manifest(self) -> Manifest: ...
    @property
    def hashes(self) -> Mapping[str, str]: ...


def common_tasks(one: Comparable, other: Comparable) -> list[str]:
    """Return the tasks of both runs, in the order of `one`. Raise UserError if a task's content differs."""
    common = [task_id for task_id in one.hashes if task_id in other.hashes]
    for task_id in common:
        if one.hashes[task_id] != other.hashes[task_id]:
            raise UserError(
                f"{task_id} is not the same task in {one.folder} and {other.folder} (its text, files or labels "
                "changed between them); run the older one again"
            )
    return common


def require_same_turns(runs: Sequence[Comparable], advice: str) -> None:
    """Raise UserError if two runs have different turn limits in a common family. For runs without a common family,
    compare the largest limits."""
    first, *others = [(run.folder, run.manifest.turn_limits) for run in runs]
    for folder, limits in others:
        common = sorted(first[1].keys() & limits.keys())
        pairs = [(first[1][f], limits[f]) for f in common] or [(max(first[1].values()), max(limits.values()))]
        for one, other in pairs:
            if one != other:
                raise UserError(f"{first[0]} and {folder} differ in turn limit ({one} and {other}); {advice}")
