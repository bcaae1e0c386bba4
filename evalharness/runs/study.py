"""A study: several ordinary runs in one folder, played one after the other on one model server.

| file | what it holds |
|---|---|
| `study.json` | kind of study; its runs: name -> folder, below this one unless it lies elsewhere; names left to play |
| NAME/ | a run folder (docs/run-folder.md) |
| `server.log` | what the model server printed |
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.reading import read_json
from evalharness.config import RunConfig
from evalharness.envs import specs
from evalharness.models.resolve import prepare
from evalharness.models.served import UnreachableError
from evalharness.models.serving.model_server import SharedServers
from evalharness.records.files import STUDY
from evalharness.records.manifest import Manifest
from evalharness.records.store import MANIFEST, read_manifest, require_own_folder, write_atomically
from evalharness.results.curves import UNPERTURBED
from evalharness.runs.evaluation import RunOutcome, Watch, evaluate, unwatched

Runs = Mapping[str, RunConfig]
"""Name -> run, in the order in which they are played."""
SCHEMA = 1
BEST_OF_N = "bon"
"""Kind of a study of one greedy run and one of several samples."""
SELECT = ".select"
"""At the end of the name of a run that only chooses the best of a study; no result of its own."""


@dataclass(frozen=True)
class Played:
    """What became of a study's runs."""

    runs: Mapping[str, RunOutcome]
    """Name -> outcome, of the runs that were begun."""
    left: tuple[str, ...]
    """Names of those that were not, because an earlier one was stopped."""

    @property
    def stopped(self) -> str | None:
        """Why the study ended before every run was tried."""
        return next((outcome.stopped for outcome in self.runs.values() if outcome.stopped), None)

    @property
    def exit_status(self) -> int:
        return max((outcome.exit_status for outcome in self.runs.values()), default=0)


def study_folder(config: RunConfig, kind: str) -> Path:
    """`-o`, else one that the same options find again: more samples or perturbations join the same study.

    Asks an endpoint which model it serves, as a run does; where none answers, a study that is there is meant.
    """
    if config.execution.output is not None:
        return config.execution.output
    address = None
    if config.policy.is_endpoint:
        try:
            address = prepare(config.policy, specs(), lambda text: None, agent=config.agent).address
        except UnreachableError:
            url = config.policy.model.rstrip("/")
            found = [
                folder for folder in (_named(config, kind), _named(config, kind, url)) if folder.exists()
            ]
            if not found:
                raise
            return found[0]
    return _named(config, kind, address)


def _named(config: RunConfig, kind: str, address: str | None = None) -> Path:
    one = config.changed(samples=1).folder(address)
    return one.with_name(f"{one.name}-{kind}")


def play(
    kind: str,
    folder: Path,
    runs: Runs,
    *,
    elsewhere: Mapping[str, Path] | None = None,
    data: Path | None = None,
    began: float | None = None,
    watch: Watch = unwatched,
    on_run: Callable[[str, int, int], None] = lambda name, number, of: None,
    on_folder: Callable[[Path], None] = lambda folder: None,
) -> Played:
    """Play every run in `folder`/NAME, or continue it, in order. The caller holds the folder. `elsewhere`: runs of the
    study that exist already. `began`: as in `evaluate`, for all runs together.

    `on_run` gets (name, number from 1, how many) before each, `on_folder` each run's folder once it is there to
    stay. Raises UserError.
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

    def begun(name: str, left: Sequence[str], run: Path) -> None:
        there = {other: str(path) for other, path in (elsewhere or {}).items()}
        add_runs(kind, folder, {name: name, **there}, left)
        on_folder(run)

    with SharedServers(folder) as serve:
        for number, (name, config) in enumerate(runs.items(), start=1):
            on_run(name, number, len(runs))
            outcomes[name] = evaluate(
                config.changed(output=folder / name),
                data=data,
                began=began,
                watch=watch,
                serve=serve,
                on_folder=partial(begun, name, names[number:]),
            )
            if outcomes[name].stopped:
                break
    return Played(outcomes, tuple(name for name in runs if name not in outcomes))


def add_runs(kind: str, folder: Path, runs: Mapping[str, str], left: Sequence[str]) -> None:
    """Add runs to `study.json`. `left`: names of those that are still to begin."""
    known = read_study(folder)
    listed = {**(known[1] if known else {}), **runs}
    text = json.dumps({"schema": SCHEMA, "kind": kind, "runs": listed, "left": list(left)}, indent=2) + "\n"
    write_atomically(folder / STUDY, text)


_NAMES: Mapping[str, Callable[[Manifest], str]] = {
    "sweep": lambda manifest: manifest.config.perturb or UNPERTURBED,
    "seeds": lambda manifest: f"seed-{manifest.options.get('seed')}",
    "checkpoints": lambda manifest: manifest.model_name.rpartition("/")[2],
}
"""Kind of study -> the name of a run, as its manifest says it."""


def read_study(folder: Path) -> tuple[str, dict[str, str]] | None:
    """(kind, name -> folder of its runs), or None where `folder` holds no study. Raises UserError on damage, and where
    a run's manifest says that it is another run than its name says."""
    path = folder / STUDY
    if not path.exists():
        return None
    try:
        value = read_json(path)
        kind, runs = str(value["kind"]), {str(name): str(where) for name, where in value["runs"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise UserError(
            f"{path} is not readable ({error}); remove it and run the study's command again"
        ) from None
    for name, where in runs.items() if kind in _NAMES else ():
        try:
            own = _NAMES[kind](read_manifest(folder / where))
        except UserError:  # whoever reads the run says so
            continue
        if own != name.removesuffix(SELECT):
            raise UserError(
                f"{folder / where} holds the run {own!r}, as its manifest says, and {path} calls it {name!r}; give the "
                "folders their names back, or name the runs one by one"
            )
    return kind, runs


def run_folders(folders: Sequence[Path]) -> list[Path]:
    """Each study among `folders` replaced by the folders of its runs, without those that only choose."""
    found: list[Path] = []
    for folder in folders:
        study = read_study(folder)
        found += (
            [folder]
            if study is None
            else [folder / path for name, path in study[1].items() if not name.endswith(SELECT)]
        )
    return found


def some_run_folders(folders: Sequence[Path]) -> list[Path]:
    """`run_folders`. Raises UserError where that is none."""
    found = run_folders(folders)
    if not found:
        raise UserError(f"no run in {', '.join(map(str, folders))}")
    return found
