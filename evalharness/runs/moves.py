"""Removing and renaming run folders, and nothing else."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from evalharness.base.errors import UserError, system_errors
from evalharness.base.paths import real_path
from evalharness.records.files import STUDY
from evalharness.records.store import EPISODES, MANIFEST, read_manifest
from evalharness.runs.listing import is_being_written
from evalharness.runs.study import listed_runs

_WRITTEN = re.compile(
    r"manifest\.json|summary\.json|(episodes|errors|tokens|handouts|training|typed)\.jsonl|(episodes|turns|tokens)\.parquet|config\.yaml"
    r"|(agent|server|workers)(-\d+)?\.log|judgements|labels|study\.json|\.lock|\..*\.tmp"
)
"""What a run or a study writes into its own folder."""


def require_removable(folder: Path) -> None:
    """Raises UserError unless `folder` is a run's or a study's, at rest, and holds nothing else."""
    _require_ours(folder)
    runs = {folder / path for path in (listed_runs(folder) or ("", {}))[1].values()}
    for run in sorted(run for run in runs if run.parent == folder and (run / MANIFEST).is_file()):
        require_removable(run)
    if (folder / MANIFEST).is_file() and not (folder / EPISODES).is_file():
        _require_a_runs_manifest(folder)
    for entry in sorted(folder.iterdir()):
        if entry not in runs and not _WRITTEN.fullmatch(entry.name):
            raise UserError(f"{folder} holds {entry.name!r}, which no run writes; move that away first")


def _require_a_runs_manifest(folder: Path) -> None:
    """Other programs have a `manifest.json`, too; beside episodes a damaged one is a run's."""
    try:
        read_manifest(folder)
    except UserError as error:
        raise UserError(f"{error}; nothing else in {folder} says that it is a run's, so it stays") from None


def _require_ours(folder: Path) -> None:
    if folder.is_symlink():
        raise UserError(f"{folder} is a link; name the folder itself")
    if not ((folder / MANIFEST).is_file() or (folder / STUDY).is_file()):
        raise UserError(f"{folder} is not a run folder; the list: evalharness runs")
    if is_being_written(folder, below="**"):
        raise UserError(f"{folder} is being written by a command that goes on; stop that first")


def _require_no_part(folder: Path, what: str) -> None:
    """Raises UserError where the run is a part of a study."""
    study = folder.absolute().parent
    if folder.absolute() in [
        (study / name).absolute() for name in (listed_runs(study) or ("", {}))[1].values()
    ]:
        raise UserError(f"{folder} is a part of the study {study}; {what} that as a whole")


def remove(folder: Path) -> None:
    """Raises UserError, also where the disk refuses."""
    require_removable(folder)
    _require_no_part(folder, "remove")
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise UserError(f"cannot remove {error.filename or folder}: {error.strerror}") from None


def move(folder: Path, target: Path) -> Path:
    """Rename a run folder, or move it into the folder `target`; returns where it is. Raises UserError."""
    _require_ours(folder)
    _require_no_part(folder, "move")
    if target.is_dir() and not ((target / MANIFEST).exists() or (target / STUDY).exists()):
        target = target / real_path(folder).name
    if target.exists() or target.is_symlink():
        raise UserError(f"{target} is there already; choose another name")
    if target.absolute().is_relative_to(folder.absolute()):
        raise UserError(f"{target} is inside of {folder}")
    with system_errors(f"cannot move {folder} to {target}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder, target)
    return target
