"""Find the run folders at or below a folder: a run, a study, `results/`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.reading import read_known
from evalharness.records.files import STUDY
from evalharness.records.store import MANIFEST

TRAINING = "evalharness tuning"
"""`kind` in the manifest of a training."""
_DEEPEST = 6
"""Levels searched below the given folder."""


def below(folder: Path, depth: int = _DEEPEST) -> Iterator[Path]:
    """Yield run folders and studies at or below `folder`, by name; does not search inside them or follow links."""
    try:
        is_run = any((folder / name).is_file() for name in (MANIFEST, STUDY))
        inside = (
            []
            if is_run
            else sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink())
        )
    except PermissionError:
        return
    if is_run and is_training(folder):
        return
    if is_run:
        yield folder
    elif depth:
        for entry in inside:
            yield from below(entry, depth - 1)


def is_training(folder: Path) -> bool:
    """Return whether `evalharness tune` wrote the folder: its manifest says so."""
    return read_known(folder / MANIFEST).get("kind") == TRAINING


def find_runs(folder: Path) -> list[Path]:
    """Return the run folders at or below `folder`, including those of studies. Raises UserError if there is none."""
    if not folder.is_dir():
        raise UserError(f"{folder} is {'a file' if folder.exists() else 'not there'}; name a run folder")
    folders: list[Path] = []
    for one in below(folder):
        if (one / MANIFEST).is_file():
            folders.append(one)
        else:
            inside = sorted(entry for entry in one.iterdir() if entry.is_dir() and not entry.is_symlink())
            folders += [run for entry in inside for run in below(entry) if (run / MANIFEST).is_file()]
    if not folders:
        raise UserError(f"{folder} is not a run folder and holds none (no {MANIFEST})")
    return folders
