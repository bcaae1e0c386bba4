"""Find the run folders at or below a folder (a run, a study, `results/`), or in an archive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from evalharness.base.errors import UserError, system_errors
from evalharness.base.reading import read_known
from evalharness.data.source import MAX_FREE_BYTES, is_archive, walk
from evalharness.records.files import CONFIG, STUDY
from evalharness.records.store import EPISODES, ERRORS, MANIFEST, SUMMARY

TRAINING = "evalharness tuning"
"""The value of `kind` in the manifest of a training by `evalharness tune`."""
_DEEPEST = 6
"""Number of levels of folders that are searched below the given folder."""
_UNPACKED = (MANIFEST, STUDY, CONFIG, EPISODES, ERRORS, SUMMARY, "episodes.parquet", "turns.parquet")
_MOST_FILES = 10_000
"""Maximum number of files of runs in one archive."""


def below(folder: Path, depth: int = _DEEPEST) -> Iterator[Path]:
    """Yield the run folders and studies at or below `folder`, by name. Do not follow links or search inside runs."""
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
    """Return whether `evalharness tune` wrote the folder."""
    return read_known(folder / MANIFEST).get("kind") == TRAINING


def find_runs(place: Path, scratch: Path) -> dict[Path, Path]:
    """Map the path of each run at or below `place` to the run's folder. Runs of studies are included. `place` is a
    folder or an archive; an archive is unpacked into `scratch`. Raise UserError if there is no run."""
    folder = place
    if is_archive(place) and place.is_file():
        folder = scratch / str(len(list(scratch.iterdir())))
        _unpack(place, folder)
    elif not place.is_dir():
        problem = "is a file and no archive" if place.exists() else "does not exist"
        raise UserError(f"{place} {problem}; name a run folder")
    folders: list[Path] = []
    for one in below(folder):
        if (one / MANIFEST).is_file():
            folders.append(one)
        else:
            inside = sorted(entry for entry in one.iterdir() if entry.is_dir() and not entry.is_symlink())
            folders += [run for entry in inside for run in below(entry) if (run / MANIFEST).is_file()]
    if not folders:
        raise UserError(f"{place} is not a run and contains no run (no {MANIFEST})")
    return {place / run.relative_to(folder): run for run in folders}


def archives_in(place: Path) -> list[Path]:
    """Return the archives directly in the folder `place`; an empty list if `place` is a run or not a folder."""
    inside = sorted(place.iterdir()) if place.is_dir() and not (place / MANIFEST).exists() else []
    return [entry for entry in inside if is_archive(entry) and entry.is_file()]


def _unpack(archive: Path, folder: Path) -> None:
    """Write the files of runs from `archive` into the new folder `folder`. `walk` yields only regular files whose names
    stay inside the folder. Raises UserError if the archive is damaged or has too many files."""
    folder.mkdir()
    count = 0
    with system_errors(f"{archive} cannot be unpacked"):
        for entry in walk(archive):
            if PurePosixPath(entry.name).name not in _UNPACKED:
                continue
            count += 1
            if count > _MOST_FILES:
                raise UserError(f"{archive} is refused: it contains more than {_MOST_FILES:,} files of runs")
            target = folder / entry.name
            target.parent.mkdir(parents=True, exist_ok=True)
            entry.copy_to(target, most=MAX_FREE_BYTES)
