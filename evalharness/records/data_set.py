"""Read a data set's file as a run folder; the training wing converts its conversations to a run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.extensions import find_hook
from evalharness.base.reading import sha256_of
from evalharness.base.terminal import say
from evalharness.records.store import read_manifest

TRAINING_DATA = "training data"
"""`kind` of the model in the manifest of a run that was made from a data set."""
MARK_SUFFIX = "_error"
"""Suffix of a format error: if the data set marks a message with the error `place`, its turn gets `place_error`."""


@contextmanager
def open_as_runs(paths: Sequence[Path], notes: list[str]) -> Iterator[list[Path]]:
    """Replace each file among `paths` by a temporary run folder of its conversations. Append messages about unreadable
    lines to `notes`. Raise UserError if a file cannot be converted."""
    with tempfile.TemporaryDirectory(prefix="evalharness-data-") as name:
        folders = []
        for number, path in enumerate(paths):
            folder = path
            if path.is_file():
                folder = Path(name, f"{number}-{path.stem}")
                notes += _writer(path)(path, folder)
            folders.append(folder)
        yield folders


def open_as_judged(path: Path) -> Path:
    """Return the path of a run folder unchanged. For a data set `data.jsonl`, return the folder `data.judged` beside
    it, which stores the raters' verdicts; make it if it is missing.

    Raise UserError if that run folder was made from other content.
    """
    if not path.is_file():
        return path
    folder = name_judged_folder(path)
    if not folder.exists():
        if not os.access(path.parent, os.W_OK):
            raise UserError(
                f"{path.parent} cannot be written: the ratings of a data set are stored beside it"
            )
        with tempfile.TemporaryDirectory(prefix=".evalharness-", dir=path.parent) as name:
            made = Path(name, "run")
            for line in _writer(path)(path, made):
                say(f"evalharness: {line}")
            shutil.move(made, folder)
    elif read_manifest(folder).identity.model.get("sha256") != sha256_of(path):
        raise UserError(
            f"{folder} was made from other content of {path}; move the folder away to judge this one"
        )
    return folder


def name_judged_folder(data: Path) -> Path:
    """Map `data.jsonl` to `data.judged`."""
    return data.with_name(f"{data.stem}.judged")


def _writer(path: Path) -> Callable[[Path, Path], Sequence[str]]:
    """Return the function that converts a data set's file to a run folder; it returns messages about bad lines."""
    if (write_run := find_hook("run_from_file")) is None:
        raise UserError(f"{path} is a file; only evalharness.training can read a file as a run")
    return write_run
