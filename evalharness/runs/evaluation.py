"""Evaluate a configuration: play the episodes that are left, and write the summary."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from evalharness.base.errors import UserError, nearest
from evalharness.config import RunConfig
from evalharness.envs import specs as installed_specs
from evalharness.envs.base import EnvSpec, Task
from evalharness.models.base import Policy
from evalharness.models.event_loop import run_to_end
from evalharness.models.serving.model_server import SharedServers
from evalharness.play.episodes import Work
from evalharness.play.progress import FamilyProgress, Progress
from evalharness.play.session import RunSession
from evalharness.play.time_limit import TimeLimit
from evalharness.protocol.perturb import PlayedSurface, surfaces
from evalharness.protocol.prompt import PromptFile, load_prompts
from evalharness.records.make_manifest import make_manifest
from evalharness.records.store import RunStore, find_manifest, read_episodes
from evalharness.records.summary import Summary
from evalharness.results.summarize import earlier_timing, write_summary
from evalharness.results.tables import write_parquet
from evalharness.runs.resume import check_left, identity_of_fewer_tasks, jobs_left, prepare_or_stored
from evalharness.runs.selected import selected_tasks
from evalharness.suites.selection import Load, family_tasks

_LOG = logging.getLogger("evalharness")


Watch = Callable[[Progress], AbstractContextManager[None]]
"""A function whose context manager shows a run's progress."""


@contextmanager
def watch_nothing(progress: Progress) -> Iterator[None]:
    yield


@dataclass(frozen=True)
class RunTasks:
    """The tasks and prompts of a run. They do not depend on the model."""

    specs: Mapping[str, EnvSpec]
    tasks: Mapping[str, Sequence[Task]]
    """Family -> tasks, sorted by family."""
    prompts: Mapping[str, PromptFile]
    """Family -> prompt file, for the families of `tasks`."""
    surfaces: Mapping[str, PlayedSurface]
    turn_limits: Mapping[str, int]
    """Family -> maximum number of turns of an episode."""
    subset: Mapping[str, int]
    """Task id -> number of tasks that the task represents (`--subset`)."""

    @property
    def prompt_hashes(self) -> dict[str, str]:
        return {family: prompt.sha256 for family, prompt in self.prompts.items()}


def choose(config: RunConfig, data: Path | None, load: Load = family_tasks) -> RunTasks:
    """Select a run's tasks and prompts. `load` reads the tasks of a suite. Raises UserError."""
    specs = installed_specs()
    for family in config.execution.workers:
        if family not in specs:
            raise UserError(f"--workers: unknown family {family!r}{nearest(family, sorted(specs))}")
    tasks, stands_for = selected_tasks(specs, config.selection, data, load)
    families = list(tasks)
    if config.execution.engine == "stock":
        specs = {**specs, **{family: specs[family].on_stock_engine() for family in families}}
    prompts = load_prompts([specs[family] for family in families], config.agent.prompts, config.adaptation)
    for family, prompt in prompts.items():
        if line := prompt.fewer_examples({task.kind for task in tasks[family]}):
            _LOG.info(line)
    limits = {family: config.agent.turn_limit(specs[family]) for family in families}
    spoken = surfaces(specs, families, config.agent.perturb)
    for family, surface in spoken.items():
        surface.require_effect(prompts[family])
    return RunTasks(specs, tasks, prompts, spoken, limits, stands_for)


@dataclass(frozen=True)
class RunOutcome:
    folder: Path
    summary: Summary
    stopped: str | None
    """Why the run ended before every episode was tried; None if all were tried."""

    finished: float | None = None
    """End of the last episode (Unix time), if all episodes were finished before this call; otherwise None."""

    @property
    def nothing_to_play(self) -> str | None:
        """Return the message that all episodes were finished before; None if some were left."""
        if self.finished is None:
            return None
        count = sum(row.episodes for row in self.summary.families.values())
        selected = sum(row.episodes_selected for row in self.summary.families.values())
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.finished))
        return f"nothing to play: {count} of {selected} episodes were finished on {day}; -o DIR for a new run"

    @property
    def exit_status(self) -> int:
        """Return 3 if episodes are left, or if the agent or the simulator of a family always failed; else 0."""
        summary = self.summary
        broken = summary.agent_always_exits or summary.halting_families
        return 0 if self.stopped is None and summary.is_complete and not broken else 3


def evaluate(
    config: RunConfig,
    *,
    data: Path | None = None,
    watch: Watch = watch_nothing,
    serve: SharedServers | None = None,
    person: Policy | None = None,
    began: float | None = None,
    on_folder: Callable[[Path], None] = lambda folder: None,
) -> RunOutcome:
    """Evaluate `config`. If its folder has an unfinished run of the same configuration, continue that run
    (`runs.resume`). `data`: the user's data folder. `serve`: model servers that keep running after this run. `person`:
    the policy if the model is `human:NAME`. `on_folder` is called with the run's folder when it exists. `began`: start
    of the time limit (as `time.monotonic`; default: now). Raises UserError for errors that the user can fix. Failures
    of servers and simulators are recorded, and do not raise."""
    clock = TimeLimit(config.limits.time_limit, began=time.monotonic() if began is None else began)
    samples = config.selection.samples
    chosen = choose(config, data)
    progress = Progress({f: FamilyProgress(len(tasks) * samples) for f, tasks in chosen.tasks.items()})

    def set_status(text: str) -> None:
        progress.status = text

    with watch(progress):
        prepared = prepare_or_stored(config, chosen.specs, set_status, serve, person)
        folder = config.folder(prepared.address)
        with RunStore(folder) as store:
            manifest = make_manifest(
                config, chosen.tasks, chosen.specs, chosen.prompt_hashes, prepared.identity, data, chosen.subset
            )  # fmt: skip
            earlier = find_manifest(folder)
            fewer = identity_of_fewer_tasks(config, earlier, chosen.specs, chosen.tasks, manifest, data)
            store.load_or_refuse(manifest.to_json(), fewer)
            if earlier is not None:
                on_folder(folder)
            timing = earlier_timing(folder)
            finished = _count_stored(folder, progress)
            jobs = jobs_left(chosen.tasks, samples, chosen.turn_limits, store.done)
            if prepared.missing and jobs:
                raise prepared.missing
            if prepared.missing:
                name = manifest.model_name
                _LOG.warning(f"no answer from {config.policy.model}: these are the stored results of {name}")
            stopped = clock.stop_reason() if jobs else None
            checks = not jobs and check_left(config, earlier, prepared)
            if earlier is None or checks or (jobs and stopped is None):
                work = Work(
                    config.policy, config.agent, config.limits, config.execution,
                    config.to_yaml(), chosen.specs, chosen.prompts, chosen.surfaces,
                    data, jobs, clock, config.repeat_turns,
                )  # fmt: skip
                start = RunSession(work, store, progress)
                result = run_to_end(start.play(prepared, manifest, on_folder))
                stopped = result.stopped
                if jobs or earlier is None:
                    timing = timing.model_copy(update=result.timing.list_given_fields())
            else:
                store.note_labels(config.execution.labels)
            progress.status = "writing the tables"
            write_parquet(folder)
            summary = write_summary(folder, timing.with_end(stopped))
            return RunOutcome(folder, summary, stopped, None if earlier is None or jobs else finished)


def _count_stored(folder: Path, progress: Progress) -> float | None:
    """Count the stored episodes in `progress`. Return when the last one ended (Unix time); None without episodes."""
    ends = []
    for episode in read_episodes(folder):
        progress.count_episode(episode.family, episode.success, episode.progress)
        ends.append(episode.started + episode.wall_s)
    return max(ends, default=None)
