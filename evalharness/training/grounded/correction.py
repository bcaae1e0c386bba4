"""Correct the errors of a model in whole runs (`refine correct`). Equal runs give identical files."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.envs.base import MAX_TURNS, EnvSpec, Task
from evalharness.models.base import Environment
from evalharness.protocol.prompt import load_prompt
from evalharness.records.episode import Episode
from evalharness.records.manifest import Manifest
from evalharness.records.store import read_manifest
from evalharness.results.tables import read_sorted_episodes
from evalharness.suites.excluded import task_forms
from evalharness.training.datasets.conversation import Conversation, MarkedMessage, write_data
from evalharness.training.datasets.from_runs import find_run_folder
from evalharness.training.datasets.overlap import Exclusion, PlayedTasks
from evalharness.training.grounded.draft import NoTrajectoryError
from evalharness.training.grounded.making import FamilyCount, FamilyCounts, FamilyMaking, Making
from evalharness.training.grounded.takeover import (
    CorrectedRun,
    Correction,
    correct_episode,
    find_faults,
    find_takeovers,
)


@dataclass(frozen=True)
class _Takeover:
    key: str
    task: Task
    episode: Episode
    after: int
    taught: CorrectedRun


@dataclass
class CorrectionPlan:
    """The episodes to correct, collected from all runs."""

    how: Correction
    exclusion: Exclusion
    runs: dict[str, str] = field(default_factory=dict)
    """Number of the run and name of its folder -> digest of its configuration."""
    jobs: dict[str, list[_Takeover]] = field(default_factory=lambda: defaultdict(list))
    """Family -> corrections."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Reason -> number of episodes."""
    episodes: int = 0

    def counts(self) -> FamilyCounts:
        return {family: FamilyCount(len(jobs)) for family, jobs in self.jobs.items()}

    def add(self, number: int, folder: Path, specs: Mapping[str, EnvSpec]) -> None:
        """Add the episodes of one run. Raises UserError if the run has another agent than react, or a perturbation."""
        how, exclusion = self.how, self.exclusion
        manifest = read_manifest(folder)
        _require_react(folder, manifest)
        self.runs[f"{number}/{folder.name}"] = manifest.digest
        seed = manifest.config.suite_seed
        tasks = PlayedTasks(exclusion.data)
        for episode in read_sorted_episodes(folder):
            self.episodes += 1
            spec = specs.get(episode.family)
            if spec is None:
                self.left_out["its environment is not installed"] += 1
                continue
            task = tasks.find(episode.family, episode.suite, seed, episode.task_hash)
            ends = find_takeovers(find_faults(episode), how.most)
            if task is None:
                self.left_out["its task is missing (another version of the suite?)"] += 1
            elif (reason := _find_exclusion(task, spec, exclusion)) is not None:
                self.left_out[reason] += 1
            elif load_prompt(spec).sha256 != episode.prompt_hash:
                self.left_out["its prompt file is missing"] += 1
            elif not ends:
                self.left_out["it has no fault"] += 1
            else:
                taught = CorrectedRun(load_prompt(spec), manifest.model_name, number, seed, how)
                self.jobs[episode.family] += [
                    _Takeover(f"{number}/{task.id}/{episode.sample}/{after}", task, episode, after, taught)
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


def _find_exclusion(task: Task, spec: EnvSpec, exclusion: Exclusion) -> str | None:
    probe = Conversation("", "", task.family, task.content_hash, (), {"task_forms": task_forms(spec, task)})
    return exclusion.check(probe)


def plan_correction(
    runs: Sequence[Path], how: Correction, specs: Mapping[str, EnvSpec], exclusion: Exclusion
) -> CorrectionPlan:
    """Return the episodes to correct in all runs. Raises UserError, also if no episode can be corrected."""
    plan = CorrectionPlan(how, exclusion)
    for number, path in enumerate(runs, 1):
        plan.add(number, find_run_folder(path), specs)
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
    """Write `output` and its manifest; return the manifest. Raises UserError, InfrastructureError."""
    progress = progress or plan.counts()
    made = {
        "command": "refine correct",
        "correction": asdict(plan.how),
        "runs": plan.runs,
        "models": sorted({job.taught.model for jobs in plan.jobs.values() for job in jobs}),
        "prompts": {family: load_prompt(specs[family]).sha256 for family in sorted(plan.jobs)},
        "excluded": plan.exclusion.to_json(),
    }
    making = Making()
    making.families += [
        _Family(making, specs[family], progress[family], jobs, plan.exclusion.data, workers)
        for family, jobs in sorted(plan.jobs.items())
    ]
    conversations = await making.run()
    not_made = sum((family.count.refused for family in making.families), Counter[str]())
    if not conversations:
        reasons = ", ".join(f"{n:,} {why}" for why, n in sorted(not_made.items()))
        raise UserError(f"no correction could be made ({reasons})")
    tally = {
        "episodes": plan.episodes,
        "left_out": dict(sorted(plan.left_out.items())),
        "not_made": dict(sorted(not_made.items())),
    }
    return write_data(output, conversations, {**made, "tally": tally})


class _Family(FamilyMaking):
    def __init__(
        self,
        making: Making,
        spec: EnvSpec,
        count: FamilyCount,
        jobs: Sequence[_Takeover],
        data: Path | None,
        workers: int | None,
    ) -> None:
        super().__init__(making, spec, count, data, workers)
        self.jobs = jobs

    async def run(self) -> None:
        """Make the family's corrections in order. Of equal conversations keep the first: with --errors none, the
        teacher plays every episode of a task in the same way."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._job(job)) for job in self.jobs]
        made = [conversation for task in tasks if (conversation := task.result()) is not None]
        first: dict[tuple[MarkedMessage, ...], Conversation] = {}
        for conversation in made:
            first.setdefault(conversation.messages, conversation)
        self.conversations = [*first.values()]
        if equal := len(made) - len(first):
            self.count.refused["equal to another conversation"] += equal
            self.count.made -= equal

    async def _job(self, job: _Takeover) -> Conversation | None:
        result = await self.with_environment(job.key, lambda environment: self._correct(environment, job))
        self.count.tasks += 1
        if isinstance(result, str):
            self.count.refused[result] += 1
            return None
        self.count.made += 1
        return result

    async def _correct(self, environment: Environment, job: _Takeover) -> Conversation | str:
        """Return the corrected episode, or the reason why the episode could not be corrected."""
        stage = self.stage(environment, job.task, MAX_TURNS)
        try:
            return await correct_episode(stage, job.episode, job.after, job.taught)
        except NoTrajectoryError as reason:
            return str(reason)
