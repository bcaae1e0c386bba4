"""One evaluation from its configuration to its summary."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError, nearest
from evalharness.base.redaction import redact
from evalharness.config import RunConfig
from evalharness.envs import specs as installed_specs
from evalharness.envs.base import EnvSpec, Task
from evalharness.models.base import Policy
from evalharness.models.event_loop import run_to_end
from evalharness.models.opened import Prepared, no_policy
from evalharness.models.resolve import prepare
from evalharness.models.served import UnreachableError
from evalharness.models.serving.model_server import SharedServers
from evalharness.play.budget import Budget, TimeLimit
from evalharness.play.cluster import worker_site
from evalharness.play.episodes import Work
from evalharness.play.progress import FamilyProgress, Progress
from evalharness.play.scheduler import Job
from evalharness.play.start import Start
from evalharness.protocol.perturb import PlayedSurface, surfaces
from evalharness.protocol.prompt import PromptFile, load_prompts
from evalharness.records.cost import Tokens, prices_of
from evalharness.records.make_manifest import make_manifest
from evalharness.records.manifest import Manifest
from evalharness.records.resolved import resolved
from evalharness.records.store import MANIFEST, RunStore, read_episodes, read_manifest
from evalharness.records.summary import Summary
from evalharness.results.summary import earlier_timing, write_summary
from evalharness.results.tables import write_parquet, write_token_table
from evalharness.runs.selected import selected_tasks
from evalharness.suites.selection import Load, family_tasks
from evalharness.suites.temporary import NO_SUITES

_LOG = logging.getLogger("evalharness")


Watch = Callable[[Progress], AbstractContextManager[None]]
"""Shows a run's progress for as long as its context is open."""


@contextmanager
def unwatched(progress: Progress) -> Iterator[None]:
    yield


@dataclass(frozen=True)
class Chosen:
    """What a configuration means before any model is looked at."""

    specs: Mapping[str, EnvSpec]
    tasks: Sequence[Task]
    prompts: Mapping[str, PromptFile]
    """Of the families that are played, sorted by name."""
    surfaces: Mapping[str, PlayedSurface]
    subset: Mapping[str, int]
    """Of `--subset`: task id -> how many tasks it stands for."""


def choose(config: RunConfig, data: Path | None, load: Load = family_tasks) -> Chosen:
    """`load` as in `select`. Raises UserError."""
    specs = installed_specs()
    for family in config.execution.workers:
        if family not in specs:
            raise UserError(f"--workers: unknown family {family!r}{nearest(family, sorted(specs))}")
    tasks, stands_for = selected_tasks(specs, config.selection, data, load)
    families = sorted({task.family for task in tasks})
    prompts = load_prompts([specs[family] for family in families], config.agent.prompts, config.adaptation)
    for family, prompt in prompts.items():
        if line := prompt.fewer_examples({task.kind for task in tasks if task.family == family}):
            _LOG.info(line)
    return Chosen(specs, tasks, prompts, surfaces(specs, families, config.agent.perturb), stands_for)


def smaller_identity(
    config: RunConfig, folder: Path, chosen: Chosen, manifest: Manifest, data: Path | None
) -> dict[str, Any] | None:
    """The identity of this run over what the folder's own `--tasks`, `--limit` and `--draw` choose, where all that is
    among our tasks: it may go on. None where it is not, and where there is no such folder."""
    if not (folder / MANIFEST).exists():
        return None
    earlier = read_manifest(folder).config
    changed = config.changed(tasks=earlier.tasks or "all", limit=earlier.limit, draw=earlier.sample)
    if changed.selection == config.selection:
        return None
    try:
        tasks, _ = selected_tasks(chosen.specs, changed.selection, data, NO_SUITES.tasks)
    except UserError:  # of a family that is not installed, say, or whose suite was never made here
        return None
    if not {task.id for task in tasks} <= {task.id for task in chosen.tasks}:
        return None
    families, identity = {task.family for task in tasks}, manifest.identity
    prompts = {family: sha256 for family, sha256 in identity.prompts_sha256.items() if family in families}
    return make_manifest(changed, tasks, chosen.specs, prompts, identity.model, data).identity.to_json()


@dataclass(frozen=True)
class Outcome:
    folder: Path
    summary: Summary
    stopped: str | None
    """Why the run ended before every episode was tried; None when it did not."""

    finished: float | None = None
    """When the last episode was finished (Unix time), where nothing was left to play; None where something was."""

    @property
    def nothing_to_play(self) -> str | None:
        """What a person reads then."""
        if self.finished is None:
            return None
        count = sum(row.episodes for row in self.summary.families.values())
        selected = sum(row.episodes_selected for row in self.summary.families.values())
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.finished))
        return f"nothing to play: {count} of {selected} episodes were finished on {day}; -o DIR for a new run"

    @property
    def exit_status(self) -> int:
        """0, or 3 when infrastructure failures left episodes unplayed, or the agent's process ended in each one."""
        whole = self.summary.is_complete and not self.summary.agent_always_exits
        return 0 if self.stopped is None and whole else 3


def evaluate(
    config: RunConfig,
    *,
    data: Path | None = None,
    watch: Watch = unwatched,
    serve: SharedServers | None = None,
    person: Policy | None = None,
    began: float | None = None,
    on_folder: Callable[[Path], None] = lambda folder: None,
) -> Outcome:
    """Run `config`, or continue it when its folder holds an unfinished run of the same configuration.

    `data` is the user's data folder; `serve` gives the run a model server that outlives it, and `person` answers for a
    `human:NAME` (`prepare`); `on_folder` is
    given the run's folder once it is there to stay; `began` (of `time.monotonic`, default: now) is where `--time-limit`
    starts. Raises UserError for what the user can fix; infrastructure failures
    are recorded, and the outcome says so.
    """
    clock = TimeLimit(config.limits.time_limit, began=time.monotonic() if began is None else began)
    chosen = choose(config, data)
    specs, tasks, prompts, spoken = chosen.specs, chosen.tasks, chosen.prompts, chosen.surfaces
    families = list(prompts)
    counts = {
        f: FamilyProgress(sum(t.family == f for t in tasks) * config.selection.samples) for f in families
    }
    progress = Progress(counts)

    def set_status(text: str) -> None:
        progress.status = text

    prices = prices_of(config.policy)

    with watch(progress):
        prepared = prepare_or_stored(config, specs, set_status, serve, person)
        folder = config.folder(prepared.address)
        with RunStore(folder) as store:
            manifest = make_manifest(
                config,
                tasks,
                specs,
                {f: prompt.sha256 for f, prompt in prompts.items()},
                prepared.identity,
                data,
                chosen.subset,
            )
            store.resume(manifest.to_json(), smaller_identity(config, folder, chosen, manifest, data))
            if (folder / MANIFEST).exists():
                on_folder(folder)
            finished, timing = None, earlier_timing(folder)
            lost = timing.unfinished_tokens or Tokens()
            budget = Budget(prices, config.limits.cost_limit, unfinished=lost) if prices else None
            for episode in read_episodes(folder):
                if budget:
                    budget.count_stored(episode)
                progress.count_episode(episode.family, episode.success, episode.progress)
                finished = max(finished or 0.0, episode.started + episode.wall_s)
            jobs = [
                Job(task, sample, float(config.agent.turn_limit(specs[task.family])))
                for task in tasks
                for sample in range(config.selection.samples)
                if (task.id, sample) not in store.done
            ]
            if prepared.missing:
                if jobs:
                    raise prepared.missing
                _LOG.warning(
                    f"no answer from {config.policy.model}: these are the stored results of {manifest.model_name}"
                )
            if jobs:
                finished = None
            stopped = budget.nearly_reached() if budget and jobs else None
            if jobs and stopped is None:
                stopped = clock.reached()
            if (jobs and stopped is None) or not (folder / MANIFEST).exists():
                finished = None
                with worker_site(
                    config.execution.cluster,
                    install=config.execution.cluster_install,
                    on_status=set_status,
                    lasting=serve.lasting if serve else None,
                ) as site:
                    work = Work(
                        config.policy, config.agent, config.limits, config.execution,
                        resolved(config.options(), config.policy), specs, prompts, spoken, data, jobs, budget, clock,
                    )  # fmt: skip
                    start = Start(work, store, progress, site)
                    result = run_to_end(start.play(prepared, manifest, on_folder))
                stopped = result.stopped
                timing = timing.model_copy(update=result.timing.given())
            else:
                store.note_labels(config.execution.label)
            timing = timing.ended(prices, stopped)
            progress.status = "writing the tables"
            write_parquet(folder)
            write_token_table(folder)
            return Outcome(folder, write_summary(folder, timing), stopped, finished)


def prepare_or_stored(
    config: RunConfig,
    specs: Mapping[str, EnvSpec],
    on_status: Callable[[str], None],
    serve: SharedServers | None = None,
    person: Policy | None = None,
) -> Prepared:
    """`prepare`; where no server answers, the model that the run's folder names, for what is stored there."""
    try:
        prepared = prepare(
            config.policy, specs, on_status, agent=config.agent, outside=config.outside,
            cluster=config.execution.cluster, serve=serve, person=person,
        )  # fmt: skip
        _require_as_telling(config, prepared)
        return prepared
    except UnreachableError as error:
        # The server has a say in the folder's name.
        for folder in (config.folder(), config.folder(config.policy.model.rstrip("/"))):
            if (folder / MANIFEST).exists():
                left = UserError(
                    f"{error}\nepisodes are left to play; for what is there: evalharness show {folder}"
                )
                return Prepared(read_manifest(folder).identity.model, no_policy, missing=left)
        raise


def _require_as_telling(config: RunConfig, prepared: Prepared) -> None:
    """Raises UserError where the server said which model it serves when the run began, and does not now."""
    if not config.policy.is_endpoint or "served" in prepared.identity:
        return
    for folder in (config.folder(), config.folder(prepared.address)):
        if not (folder / MANIFEST).exists():
            continue
        manifest = read_manifest(folder)
        served = manifest.identity.model.get("served")
        same_place = any(
            set(map(redact, config.policy.endpoints)) & set(start.operation.endpoints)
            for start in manifest.sessions
        )
        if served and (same_place or config.execution.output is not None):
            raise UserError(
                f"{', '.join(config.policy.endpoints)} has no list of models that can be read, and {folder} holds a "
                f"run of {json.dumps(served)}: whether that model is still served is not known; "
                "make the list (GET /models) readable again, or choose another folder with -o DIR"
            )
