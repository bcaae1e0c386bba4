"""Corrections of whole runs, many at once: the same runs give the same bytes, and a killed command continues."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evalharness.base.errors import InfrastructureError, UserError, at_least, first_error
from evalharness.base.machine import usable_cores
from evalharness.envs.base import MAX_TURNS, EnvSpec, Task, teaching_of
from evalharness.models.base import Environment
from evalharness.models.tries import Tries
from evalharness.play.workers.pool import EnvironmentPool
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import load_prompt
from evalharness.records.episode import Episode
from evalharness.records.manifest import Manifest
from evalharness.records.store import read_manifest
from evalharness.results.tables import sorted_episodes
from evalharness.suites.selection import family_tasks
from evalharness.training.datasets.from_runs import run_folder
from evalharness.training.datasets.journal import Journal
from evalharness.training.datasets.overlap import Exclusion, task_forms
from evalharness.training.datasets.sample import Sample, write_samples
from evalharness.training.grounded.draft import NoTrajectoryError, Stage
from evalharness.training.grounded.faults import faults, takeovers
from evalharness.training.grounded.grounded import FamilyCount, FamilyCounts
from evalharness.training.grounded.takeover import Errors, Taught, corrected

_EPISODES_PER_WORKER = 8
_ATTEMPTS = 3
"""Times that an episode is tried whose simulator died or hung."""


@dataclass(frozen=True)
class Correction:
    """What is to be made of runs."""

    most: int = 1
    """Corrections of one episode, at the end of its first runs of faults."""
    after_faults: int = 2
    """Faults in a row after which the teacher takes over."""
    turns: int | None = None
    """Of the teacher, that are kept. None: to the end."""
    wordings: int | None = None
    seed: int = 0
    errors: Errors = "own"
    """none: the same tasks, each played by the teacher from its first turn."""

    def __post_init__(self) -> None:
        """Raises UserError."""
        at_least(
            1, per_episode=self.most, after_faults=self.after_faults, turns=self.turns, wordings=self.wordings
        )


@dataclass(frozen=True)
class _Job:
    key: str
    task: Task
    episode: Episode
    after: int
    taught: Taught


@dataclass
class CorrectionPlan:
    """What there is to correct, of all runs."""

    how: Correction
    exclusion: Exclusion
    runs: dict[str, str] = field(default_factory=dict)
    """Folder's name -> digest of its configuration."""
    jobs: dict[str, list[_Job]] = field(default_factory=lambda: defaultdict(list))
    """By family."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Reason -> episodes."""
    episodes: int = 0

    def counts(self) -> FamilyCounts:
        return FamilyCounts({family: FamilyCount(len(jobs)) for family, jobs in self.jobs.items()})

    def add(self, number: int, folder: Path, specs: Mapping[str, EnvSpec]) -> None:
        """Raises UserError for a run whose turns cannot be taken over."""
        how, exclusion = self.how, self.exclusion
        manifest = read_manifest(folder)
        _require_react(folder, manifest)
        self.runs[folder.name] = manifest.digest
        seed = manifest.config.suite_seed
        tasks: dict[str, dict[str, Task]] = {}
        for episode in sorted_episodes(folder):
            self.episodes += 1
            spec = specs.get(episode.family)
            if spec is None:
                self.left_out["its environment is not installed"] += 1
                continue
            if episode.family not in tasks:
                known = family_tasks(spec, episode.suite, exclusion.data, seed)
                tasks[episode.family] = {task.content_hash: task for task in known}
            task = tasks[episode.family].get(episode.task_hash)
            ends = takeovers(faults(episode), how.most, how.after_faults)
            if task is None:
                self.left_out["its task is not at hand (another version of the suite?)"] += 1
            elif (reason := _evaluated(task, spec, exclusion)) is not None:
                self.left_out[reason] += 1
            elif load_prompt(spec).sha256 != episode.prompt_hash:
                self.left_out["its prompt file is not at hand"] += 1
            elif not ends:
                self.left_out["no fault"] += 1
            else:
                taught = Taught(
                    load_prompt(spec), manifest.model_name, number, seed, how.turns, how.wordings, how.seed,
                    how.errors,
                )  # fmt: skip
                self.jobs[episode.family] += [
                    _Job(f"{number}/{task.id}/{episode.sample}/{after}", task, episode, after, taught)
                    for after in ends
                    if after < MAX_TURNS
                ]


def _require_react(folder: Path, manifest: Manifest) -> None:
    options = manifest.config
    if options.agent_name != "react" or options.perturb is not None:
        raise UserError(
            f"{folder}: only unperturbed runs of the agent react can be corrected; play one with: "
            "evalharness run --suite open --suite-seed N"
        )


def _evaluated(task: Task, spec: EnvSpec, exclusion: Exclusion) -> str | None:
    world = teaching_of(spec)
    probe = Sample("", "", task.family, task.content_hash, (), {"task_forms": task_forms(world, task)})
    return exclusion.why_not(probe)


def plan_correction(
    runs: Sequence[Path], how: Correction, specs: Mapping[str, EnvSpec], exclusion: Exclusion
) -> CorrectionPlan:
    """Raises UserError, also where nothing can be corrected."""
    plan = CorrectionPlan(how, exclusion)
    for number, path in enumerate(runs, 1):
        plan.add(number, run_folder(path), specs)
    if not plan.jobs:
        reasons = ", ".join(f"{n:,} {why}" for why, n in sorted(plan.left_out.items())) or "there are none"
        raise UserError(f"none of {plan.episodes:,} episodes can be corrected ({reasons})")
    return plan


async def correct(
    plan: CorrectionPlan,
    specs: Mapping[str, EnvSpec],
    output: Path,
    *,
    workers: int | None = None,
    progress: FamilyCounts | None = None,
) -> dict[str, Any]:
    """Make `output` and its manifest; returns the manifest. Raises UserError, InfrastructureError."""
    progress = progress or plan.counts()
    made = {
        "command": "refine correct",
        "correction": asdict(plan.how),
        "runs": plan.runs,
        "models": sorted({job.taught.model for jobs in plan.jobs.values() for job in jobs}),
        "prompts": {family: load_prompt(specs[family]).sha256 for family in sorted(plan.jobs)},
        "excluded": plan.exclusion.to_json(),
    }
    journal = Journal(output.with_name(f".{output.name}.journal"), made)
    tries = Tries(_ATTEMPTS, _end_where_given_up, at_once=lambda: len(plan.jobs) * _EPISODES_PER_WORKER)
    families = [
        _Family(specs[family], jobs, progress.families[family], journal, tries, plan.exclusion.data, workers)
        for family, jobs in sorted(plan.jobs.items())
    ]
    try:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(family.run()) for family in families]
    except BaseExceptionGroup as errors:
        raise first_error(errors) from None
    finally:
        journal.close()
        await asyncio.gather(*(family.pool.close() for family in families))
    samples = [sample for done in running for sample in done.result()]
    not_made = sum((family.count.refused for family in families), Counter[str]())
    if not samples:
        reasons = ", ".join(f"{n:,} {why}" for why, n in sorted(not_made.items()))
        raise UserError(f"no correction could be made ({reasons})")
    tally = {
        "episodes": plan.episodes,
        "left_out": dict(sorted(plan.left_out.items())),
        "not_made": dict(sorted(not_made.items())),
    }
    manifest = write_samples(output, samples, {**made, "tally": tally})
    journal.remove()
    return manifest


def _end_where_given_up(key: str, attempt: int, error: InfrastructureError, final: bool) -> None:
    if final:
        raise error


@dataclass
class _Family:
    """The corrections of one family."""

    spec: EnvSpec
    jobs: Sequence[_Job]
    count: FamilyCount
    journal: Journal
    tries: Tries[str]
    data: Path | None
    workers: int | None

    def __post_init__(self) -> None:
        self.world = teaching_of(self.spec)
        self.surface = PlayedSurface(self.spec, None)
        self.pool = EnvironmentPool(
            self.spec, self.data, self.workers or usable_cores(), episodes_per_worker=_EPISODES_PER_WORKER
        )

    async def run(self) -> list[Sample]:
        """In the order of the jobs."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._job(job)) for job in self.jobs]
        return [sample for task in tasks if (sample := task.result()) is not None]

    async def _job(self, job: _Job) -> Sample | None:
        result = self.journal.done.get(job.key)
        if result is None:
            result = await self.tries.of(job.key, lambda: self._made(job))
            assert result is not None  # given up, it ends everything
            self.journal.add(job.key, result)
        self.count.tasks += 1
        if "refused" in result:
            self.count.refused[result["refused"]] += 1
            return None
        self.count.made += 1
        return Sample.from_json(result["sample"])

    async def _made(self, job: _Job) -> dict[str, Any]:
        prompt = job.taught.prompt.for_kind(job.task.kind)
        rules = f"{prompt.system}\n{prompt.instruction}"
        async with self.pool.environment() as environment:
            remote: Environment = environment
            stage = Stage(job.task, remote, self.world, self.surface, rules, MAX_TURNS)
            try:
                return {"sample": (await corrected(stage, job.episode, job.after, job.taught)).to_json()}
            except NoTrajectoryError as reason:
                return {"refused": str(reason)}
