"""The run folders at or below a folder: a run, a study, `results/`."""

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
"""Levels below the given folder that are searched."""


def below(folder: Path, depth: int = _DEEPEST) -> Iterator[Path]:
    """Run folders and studies at or below `folder`, by name; nothing inside of them, no link followed."""
    try:
        found = any((folder / name).is_file() for name in (MANIFEST, STUDY))
        inside = (
            []
            if found
            else sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink())
        )
    except PermissionError:
        return
    if found and is_training(folder):
        return
    if found:
        yield folder
    elif depth:
        for entry in inside:
            yield from below(entry, depth - 1)


def is_training(folder: Path) -> bool:
    """Whether the folder is one that `evalharness tune` writes: its manifest says so."""
    return read_known(folder / MANIFEST).get("kind") == TRAINING


def found_runs(folder: Path) -> list[Path]:
    """Run folders at or below `folder`, those of studies one by one. Raises UserError if there is none."""
    if not folder.is_dir():
        raise UserError(f"{folder} is {'a file' if folder.exists() else 'not there'}; name a run folder")
    found: list[Path] = []
    for one in below(folder):
        if (one / MANIFEST).is_file():
            found.append(one)
        else:
            inside = sorted(entry for entry in one.iterdir() if entry.is_dir() and not entry.is_symlink())
            found += [run for entry in inside for run in below(entry) if (run / MANIFEST).is_file()]
    if not found:
        raise UserError(f"{folder} is not a run folder and holds none (no {MANIFEST})")
    return found
