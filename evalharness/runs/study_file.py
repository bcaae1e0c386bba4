"""Read and write `study.json`, which lists a study's runs. This module imports no model client: that takes 0.17 s."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.reading import read_json
from evalharness.records.files import STUDY
from evalharness.records.manifest import Manifest
from evalharness.records.store import read_manifest, write_atomically
from evalharness.results.curves import UNPERTURBED

SCHEMA = 1
BEST_OF_N = "bon"
"""Kind of a study with one greedy run and one of several samples."""
GREEDY, SAMPLES = "greedy", "samples"
"""Names of the two runs of a Best-of-N study."""
CHECKPOINTS = "checkpoints"
"""Kind of a study with a run for each checkpoint of a training."""
SELECT = ".select"
"""Suffix in the name of a run for `--select-on`: its scores select a checkpoint and are not reported."""


def add_runs(kind: str, folder: Path, runs: Mapping[str, str], left: Sequence[str]) -> None:
    """Add runs to `study.json`. `left`: names of the study's runs that have not been started."""
    known = read_study(folder)
    listed = {**(known[1] if known else {}), **runs}
    text = json.dumps({"schema": SCHEMA, "kind": kind, "runs": listed, "left": list(left)}, indent=2) + "\n"
    write_atomically(folder / STUDY, text)


_NAMES: Mapping[str, Callable[[Manifest], str]] = {
    "sweep": lambda manifest: manifest.config.perturb or UNPERTURBED,
    "seeds": lambda manifest: f"seed-{manifest.options.get('seed')}",
    CHECKPOINTS: lambda manifest: manifest.model_name.rpartition("/")[2],
}
"""Kind of study -> function that computes a run's name in the study from the run's manifest."""


def read_study(folder: Path) -> tuple[str, dict[str, str]] | None:
    """Return the study's kind and its runs (name -> folder); None if `folder` is not a study. Raises UserError if the
    file is damaged, or if a run's manifest contradicts the run's name."""
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
        except UserError:  # a reader of the run reports this error
            continue
        if own != name.removesuffix(SELECT):
            raise UserError(
                f"{folder / where} is the run {own!r} by its manifest, but {path} calls it {name!r}; undo the "
                "renaming of the folders, or give the run folders instead of the study"
            )
    return kind, runs


def run_folders(folders: Sequence[Path]) -> list[Path]:
    """Replace each study in `folders` by the folders of its runs. Leave out runs that only select a checkpoint."""
    expanded: list[Path] = []
    for folder in folders:
        study = read_study(folder)
        expanded += (
            [folder]
            if study is None
            else [folder / path for name, path in study[1].items() if not name.endswith(SELECT)]
        )
    return expanded


def some_run_folders(folders: Sequence[Path]) -> list[Path]:
    """Return the folders of `run_folders`. Raises UserError if the list is empty."""
    expanded = run_folders(folders)
    if not expanded:
        raise UserError(f"no run in {', '.join(map(str, folders))}")
    return expanded
