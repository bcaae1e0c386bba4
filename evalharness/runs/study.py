"""A study: several ordinary runs in one folder, played one after the other on one model server.

| file | what it holds |
|---|---|
| `study.json` | kind of study; its runs: name -> folder (relative or absolute); names of the runs left to play |
| NAME/ | a run folder (docs/run-folder.md) |
| `server.log` | output of the model server |
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.config import RunConfig
from evalharness.envs import specs
from evalharness.models.resolve import prepare
from evalharness.models.served import UnreachableError
from evalharness.models.serving.model_server import SharedServers
from evalharness.records.files import STUDY
from evalharness.records.store import MANIFEST, require_own_folder
from evalharness.runs.evaluation import RunOutcome, Watch, evaluate, watch_nothing
from evalharness.runs.study_file import add_runs, read_study

Runs = Mapping[str, RunConfig]
"""Name -> run, in playing order."""


@dataclass(frozen=True)
class StudyOutcome:
    """The outcomes of a study's runs."""

    runs: Mapping[str, RunOutcome]
    """Name -> outcome, for the runs that were started."""
    left: tuple[str, ...]
    """Names of the runs that were not started, because an earlier run was stopped."""

    @property
    def stopped(self) -> str | None:
        """Return why the study ended before every run was finished; None if no run was stopped."""
        return next((outcome.stopped for outcome in self.runs.values() if outcome.stopped), None)

    @property
    def exit_status(self) -> int:
        return max((outcome.exit_status for outcome in self.runs.values()), default=0)


def study_folder(config: RunConfig, kind: str) -> Path:
    """Return `-o`, otherwise a folder named after the options. The number of samples is left out, so it can be raised.

    Ask an endpoint for its model, as a run does. If no endpoint answers, return the folder of an existing study.
    """
    if config.execution.output is not None:
        return config.execution.output
    address = None
    if config.policy.is_endpoint:
        try:
            address = prepare(config.policy, specs(), lambda text: None, agent=config.agent).address
        except UnreachableError:
            url = config.policy.model.rstrip("/")
            existing = [
                folder
                for folder in (_find_folder(config, kind), _find_folder(config, kind, url))
                if folder.exists()
            ]
            if not existing:
                raise
            return existing[0]
    return _find_folder(config, kind, address)


def _find_folder(config: RunConfig, kind: str, address: str | None = None) -> Path:
    one = config.with_options(samples=1).folder(address)
    return one.with_name(f"{one.name}-{kind}")


def play(
    kind: str,
    folder: Path,
    runs: Runs,
    *,
    elsewhere: Mapping[str, Path] | None = None,
    data: Path | None = None,
    began: float | None = None,
    watch: Watch = watch_nothing,
    on_run: Callable[[str, int, int], None] = lambda name, number, of: None,
    on_folder: Callable[[Path], None] = lambda folder: None,
) -> StudyOutcome:
    """Play or continue the runs in order, in folders `folder`/NAME. The caller must hold the lock of `folder`.

    `elsewhere`: runs of the study that exist in other folders. `began`: start of the time limit of the whole study.
    `on_run` is called with (name, number from 1, total) before each run; `on_folder` with each run's folder when it
    exists. Raises UserError.
    """
    require_own_folder(folder, STUDY, expected=(MANIFEST, *runs))
    if (folder / MANIFEST).exists():
        raise UserError(f"{folder} is a run folder; choose another for the study with -o DIR")
    known = read_study(folder)
    if known is not None and known[0] != kind:
        raise UserError(f"{folder} holds a {known[0]} study; choose another folder with -o DIR")
    began = time.monotonic() if began is None else began
    outcomes: dict[str, RunOutcome] = {}
    names = list(runs)

    def note_begun(name: str, left: Sequence[str], run: Path) -> None:
        there = {other: str(path) for other, path in (elsewhere or {}).items()}
        add_runs(kind, folder, {name: name, **there}, left)
        on_folder(run)

    with SharedServers(folder) as serve:
        for number, (name, config) in enumerate(runs.items(), start=1):
            on_run(name, number, len(runs))
            outcomes[name] = evaluate(
                config.with_options(output=folder / name),
                data=data,
                began=began,
                watch=watch,
                serve=serve,
                on_folder=partial(note_begun, name, names[number:]),
            )
            if outcomes[name].stopped:
                break
    return StudyOutcome(outcomes, tuple(name for name in runs if name not in outcomes))
