"""One evaluation from its configuration to its summary."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs import specs as installed_specs
from envs.base import EnvSpec, Task
from evalharness import episode as episodes
from evalharness.config import RunConfig
from evalharness.errors import InfrastructureError, UserError
from evalharness.event_loop import run_to_end
from evalharness.frames import write_parquet
from evalharness.manifest import make_manifest
from evalharness.perturb import Voice, voices
from evalharness.policy.resolve import Opened, Prepared, prepare
from evalharness.progress import FamilyProgress, Progress
from evalharness.prompt import load_prompt
from evalharness.scheduler import Job, RunAbortedError, Scheduler
from evalharness.store import RunStore, read_episodes
from evalharness.summary import is_complete, write_summary
from evalharness.tasks import nearest, select
from evalharness.workers import EnvironmentPool, RemoteEnvironment

Watch = Callable[[Progress], AbstractContextManager[None]]
"""Shows a run's progress for as long as its context is open."""


@contextmanager
def unwatched(progress: Progress) -> Iterator[None]:
    yield


@dataclass(frozen=True)
class Outcome:
    folder: Path
    summary: dict[str, Any]
    stopped: str | None
    """Why the run ended before every episode was tried; None when it did not."""

    @property
    def exit_status(self) -> int:
        """0, or 3 when infrastructure failures left episodes unplayed."""
        return 0 if self.stopped is None and is_complete(self.summary) else 3


def default_workers(spec: EnvSpec) -> int:
    """Worker processes for a family: one a core where a process holds many environments; where it holds few, twice
    as many, because most of them wait for the model at any moment."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if spec.envs_per_worker >= 8 else 2 * cores


def evaluate(config: RunConfig, *, data: Path | None = None, watch: Watch = unwatched) -> Outcome:
    """Run `config`, or continue it when its folder holds an unfinished run of the same configuration.

    `data` is the user's data folder. Raises UserError for what the user can mend; infrastructure failures are
    recorded and told in the outcome.
    """
    specs = installed_specs()
    for family in config.workers:
        if family not in specs:
            raise UserError(f"--workers: unknown family {family!r}{nearest(family, sorted(specs))}")
    tasks = select(
        specs, config.tasks, config.suite, data=data, suite_seed=config.suite_seed, limit=config.limit
    )
    families = sorted({task.family for task in tasks})
    prompts = {family: load_prompt(specs[family], config.prompts) for family in families}
    spoken = voices(specs, families, config.perturb)
    counts = {f: FamilyProgress(sum(t.family == f for t in tasks) * config.samples) for f in families}
    progress = Progress(counts)

    def set_status(text: str) -> None:
        progress.status = text

    folder = config.folder()
    with RunStore(folder) as store, watch(progress):
        prepared = prepare(config, specs, set_status)
        manifest = make_manifest(
            config, tasks, specs, {f: sha for f, (_, sha) in prompts.items()}, prepared.identity
        )
        store.resume(manifest)
        for finished in read_episodes(folder):
            progress.count_episode(finished.family, finished.success, finished.progress, resumed=True)
        session = _Session(config, specs, store, progress, prompts, spoken, data)
        owed = [
            Job(task, sample)
            for task in tasks
            for sample in range(config.samples)
            if (task.id, sample) not in store.done
        ]
        stopped = None
        if owed or not (folder / "manifest.json").exists():
            stopped = run_to_end(session.play_all(prepared, manifest, owed))
        progress.status = "writing the tables"
        write_parquet(folder)
        timing = {"wall_s": progress.elapsed, "sessions": len(_sessions(folder))}
        return Outcome(folder, write_summary(folder, timing), stopped)


def _sessions(folder: Path) -> list[Any]:
    from evalharness.store import read_manifest

    return list(read_manifest(folder)["sessions"])


@dataclass
class _Session:
    """What the parts of one sitting share."""

    config: RunConfig
    specs: Mapping[str, EnvSpec]
    store: RunStore
    progress: Progress
    prompts: Mapping[str, tuple[Any, str]]
    voices: Mapping[str, Voice]
    data: Path | None

    def pools(self, owed: list[Job]) -> dict[str, EnvironmentPool]:
        log = self.store.folder / "workers.log"
        pools = {}
        for family in {job.task.family for job in owed}:
            spec = self.specs[family]
            workers = self.config.workers.get(family, default_workers(spec))
            needed = -(-sum(job.task.family == family for job in owed) // spec.envs_per_worker)
            pools[family] = EnvironmentPool(spec, self.data, min(workers, needed), log)
        return pools

    async def play_all(self, prepared: Prepared, manifest: dict[str, Any], owed: list[Job]) -> str | None:
        """Returns why the run stopped early, or None."""

        def set_status(text: str) -> None:
            self.progress.status = text

        async with AsyncExitStack() as stack:
            try:
                opened = await stack.enter_async_context(prepared.open(self.store.folder, set_status))
            finally:
                self.progress.status = ""
            manifest["sessions"][-1]["policy"] = dict(opened.facts or {})
            self.store.begin(manifest)
            pools = self.pools(owed)
            for pool in pools.values():
                stack.push_async_callback(pool.close)
            self.progress.started = time.monotonic()
            scheduler = Scheduler(
                pools=pools,
                play=lambda job, environment: self._play(job, environment, opened),
                on_episode=self._keep,
                on_failure=self._note_failure,
                concurrency=self.config.concurrency,
                attempts=self.config.attempts,
                policy_alive=opened.failure,
            )
            try:
                await scheduler.run(owed)
            except RunAbortedError as error:
                return str(error)
            return None

    async def _play(self, job: Job, environment: RemoteEnvironment, opened: Opened) -> episodes.Episode:
        task: Task = job.task
        prompt, prompt_hash = self.prompts[task.family]
        counts = self.progress.families[task.family]
        counts.running += 1
        try:
            return await episodes.play(
                task,
                environment,
                lambda world: opened.policy.session(task, job.sample, world),
                prompt=prompt,
                prompt_hash=prompt_hash,
                voice=self.voices[task.family],
                sample=job.sample,
                max_turns=self.config.max_turns,
                on_turn=self.progress.count_turn,
            )
        finally:
            counts.running -= 1

    def _keep(self, episode: episodes.Episode) -> None:
        self.store.append(episode)
        self.progress.finish(episode)

    def _note_failure(self, job: Job, attempt: int, error: InfrastructureError, final: bool) -> None:
        self.store.append_error(job.task.id, job.sample, attempt, error, final)
        self.progress.status = f"{job.task.id}, try {attempt}: {str(error).splitlines()[0]}"
        if final:
            self.progress.families[job.task.family].failures += 1
