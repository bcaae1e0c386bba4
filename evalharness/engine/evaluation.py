"""One evaluation from its configuration to its summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs import specs as installed_specs
from evalharness.analysis.summary import earlier_timing, is_complete, write_summary
from evalharness.analysis.tables import write_parquet
from evalharness.cluster import worker_site
from evalharness.config import RunConfig
from evalharness.engine.event_loop import run_to_end
from evalharness.engine.history import History, history_path
from evalharness.engine.progress import FamilyProgress, Progress
from evalharness.engine.scheduler import Job
from evalharness.engine.session import Engine
from evalharness.errors import UserError
from evalharness.policy.resolve import prepare
from evalharness.protocol.perturb import voices
from evalharness.protocol.prompt import load_prompt
from evalharness.records.manifest import make_manifest
from evalharness.records.store import RunStore, read_episodes
from evalharness.server.shared import SharedServers
from evalharness.suites.selection import nearest, select

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


def evaluate(
    config: RunConfig,
    *,
    data: Path | None = None,
    watch: Watch = unwatched,
    serve: SharedServers | None = None,
) -> Outcome:
    """Run `config`, or continue it when its folder holds an unfinished run of the same configuration.

    `data` is the user's data folder; `serve` gives the run a model server that outlives it (`prepare`).
    Raises UserError for what the user can mend; infrastructure failures are recorded and told in the outcome.
    """
    specs = installed_specs()
    for family in config.workers:
        if family not in specs:
            raise UserError(f"--workers: unknown family {family!r}{nearest(family, sorted(specs))}")
    tasks = select(
        specs,
        config.tasks,
        config.suite,
        data=data,
        suite_seed=config.suite_seed,
        limit=config.limit,
        questions=config.questions,
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
        prepared = prepare(config, specs, set_status, serve=serve)
        manifest = make_manifest(
            config, tasks, specs, {f: sha for f, (_, sha) in prompts.items()}, prepared.identity, data
        )
        store.resume(manifest)
        for finished in read_episodes(folder):
            progress.count_episode(finished.family, finished.success, finished.progress)
        history = History.load(history_path())
        owed = [
            Job(task, sample, history.expected_turns(task, config.turn_limit(specs[task.family])))
            for task in tasks
            for sample in range(config.samples)
            if (task.id, sample) not in store.done
        ]
        stopped, timing = None, earlier_timing(folder)
        if owed or not (folder / "manifest.json").exists():
            with worker_site(
                config.cluster,
                install=config.cluster_install,
                on_status=set_status,
                lasting=serve.lasting if serve else None,
            ) as site:
                engine = Engine(config, specs, store, progress, prompts, spoken, data, site)
                stopped = run_to_end(engine.play_all(prepared, manifest, owed, history))
            timing = engine.timing({family: spec.title for family, spec in specs.items()})
        progress.status = "writing the tables"
        write_parquet(folder)
        return Outcome(folder, write_summary(folder, timing), stopped)
