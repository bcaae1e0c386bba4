"""One evaluation from its configuration to its summary."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs import specs as installed_specs
from envs.base import EnvSpec, Task
from evalharness.analysis.cost import Tokens, read_prices
from evalharness.analysis.kept_summary import keep_summary
from evalharness.analysis.summary import earlier_timing, is_complete, write_summary
from evalharness.analysis.tables import write_parquet
from evalharness.analysis.token_table import write_token_table
from evalharness.cluster import worker_site
from evalharness.config import RunConfig
from evalharness.engine.budget import Budget
from evalharness.engine.history import History, history_path
from evalharness.engine.progress import FamilyProgress, Progress
from evalharness.engine.scheduler import Job
from evalharness.engine.session import Session, Work
from evalharness.engine.time_limit import TimeLimit
from evalharness.errors import UserError, nearest
from evalharness.policy.event_loop import run_to_end
from evalharness.policy.opened import Prepared
from evalharness.policy.resolve import prepare
from evalharness.policy.served import NoAnswerError
from evalharness.protocol.perturb import Voice, voices
from evalharness.protocol.prompt import PromptFile, load_prompts
from evalharness.records.manifest import make_manifest
from evalharness.records.store import MANIFEST, RunStore, read_episodes
from evalharness.server.shared import SharedServers
from evalharness.suites.selection import select

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
    voices: Mapping[str, Voice]


def choose(config: RunConfig, data: Path | None) -> Chosen:
    """Raises UserError."""
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
        sample=config.sample,
        questions=config.questions,
    )
    families = sorted({task.family for task in tasks})
    prompts = load_prompts([specs[family] for family in families], config.prompts, config.adaptation)
    for family, prompt in prompts.items():
        if line := prompt.fewer_examples({task.kind for task in tasks if task.family == family}):
            _LOG.info(line)
    return Chosen(specs, tasks, prompts, voices(specs, families, config.perturb))


@dataclass(frozen=True)
class Outcome:
    folder: Path
    summary: dict[str, Any]
    stopped: str | None
    """Why the run ended before every episode was tried; None when it did not."""

    finished: float | None = None
    """When the last episode was finished (Unix time), where nothing was left to play; None where something was."""

    @property
    def nothing_to_play(self) -> str | None:
        """What a person reads then."""
        if self.finished is None:
            return None
        count = sum(family["n"] for family in self.summary["families"].values())
        selected = sum(family["selected"] for family in self.summary["families"].values())
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.finished))
        return f"nothing to play: {count} of {selected} episodes were finished on {day}; -o DIR for a new run"

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
    on_folder: Callable[[Path], None] = lambda folder: None,
) -> Outcome:
    """Run `config`, or continue it when its folder holds an unfinished run of the same configuration.

    `data` is the user's data folder; `serve` gives the run a model server that outlives it (`prepare`); `on_folder` is
    given the run's folder once it is there to stay. Raises UserError for what the user can fix; infrastructure failures
    are recorded, and the outcome says so.
    """
    clock, chosen = TimeLimit(config.time_limit), choose(config, data)
    specs, tasks, prompts, spoken = chosen.specs, chosen.tasks, chosen.prompts, chosen.voices
    families = list(prompts)
    counts = {f: FamilyProgress(sum(t.family == f for t in tasks) * config.samples) for f in families}
    progress = Progress(counts)

    def set_status(text: str) -> None:
        progress.status = text

    prices = read_prices(config.prices, config.display_name) if config.prices else None
    if config.is_scripted:
        prices = None  # nobody is asked, so nothing is to pay

    with watch(progress):
        prepared = _prepared(config, specs, set_status, serve)
        folder = config.folder(prepared.address)
        with RunStore(folder) as store:
            manifest = make_manifest(
                config,
                tasks,
                specs,
                {f: prompt.sha256 for f, prompt in prompts.items()},
                prepared.identity,
                data,
            )
            store.resume(manifest)
            if (folder / MANIFEST).exists():
                on_folder(folder)
            finished, timing = None, earlier_timing(folder)
            if prices is not None:
                timing["prices"] = prices.model_dump()
            lost = Tokens(**timing.get("unfinished_tokens") or {})
            budget = Budget(prices, config.cost_limit, unfinished=lost) if prices else None
            for episode in read_episodes(folder):
                if budget:
                    budget.count_stored(episode)
                progress.count_episode(episode.family, episode.success, episode.progress)
                finished = max(finished or 0.0, episode.started + episode.wall_s)
            history = History.load(history_path())
            jobs = [
                Job(task, sample, history.expected_turns(task, config.turn_limit(specs[task.family])))
                for task in tasks
                for sample in range(config.samples)
                if (task.id, sample) not in store.done
            ]
            if jobs:
                finished = None
            stopped = budget.nearly_reached() if budget and jobs else None
            if jobs and stopped is None:
                stopped = clock.reached()
            if (jobs and stopped is None) or not (folder / MANIFEST).exists():
                finished = None
                with worker_site(
                    config.cluster,
                    install=config.cluster_install,
                    on_status=set_status,
                    lasting=serve.lasting if serve else None,
                ) as site:
                    work = Work(config, specs, prompts, spoken, data, jobs, budget, clock)
                    session = Session(work, store, progress, history, site)
                    result = run_to_end(session.play(prepared, manifest, on_folder))
                stopped = result.stopped
                timing |= result.timing
            timing.pop("stopped", None)
            if stopped is not None:
                timing["stopped"] = stopped
            progress.status = "writing the tables"
            write_parquet(folder)
            write_token_table(folder)
            titles = {family: specs[family].title for family in families}
            summary = keep_summary(folder, titles, lambda: write_summary(folder, timing))
            return Outcome(folder, summary, stopped, finished)


def _prepared(
    config: RunConfig,
    specs: Mapping[str, EnvSpec],
    on_status: Callable[[str], None],
    serve: SharedServers | None,
) -> Prepared:
    """`prepare`; where no server answers, the error names the run that may be there already."""
    try:
        return prepare(config, specs, on_status, serve=serve)
    except NoAnswerError as error:
        folders = (config.folder(), config.folder(config.model.rstrip("/")))
        for folder in folders:
            if (folder / MANIFEST).exists():
                raise UserError(
                    f"{error}\nwhether it serves the model of {folder} is not known; "
                    f"for what is there: evalharness show {folder}"
                ) from None
        raise
