"""A run's summary as it was last computed, for `show`: numpy, scipy and every episode are then left alone.

It lies in the user's cache folder, never in the run's, and counts for as long as everything that it was made from has
the size and the time that it had: the run's files, the stored ranges, every module of this package.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from evalharness.base.errors import DamageWarning
from evalharness.base.paths import cache_folder, ranges_folder, real_path, write_whole
from evalharness.base.version import __version__
from evalharness.records.files import EPISODES, ERRORS, MANIFEST, SUMMARY

if TYPE_CHECKING:
    from evalharness.records.summary import Summary

_KEPT = 500
"""Summaries that are kept: some kilobytes each."""


class _Kept(dict[str, Any]):
    """JSON that is read as a `Summary` is: by attributes, None where a field is not there. To import pydantic would
    take as long as all else that `show` does (0.07 s)."""

    __getattr__ = dict.get

    def to_json(self) -> dict[str, Any]:
        return self


@dataclass(frozen=True)
class KeptSummary:
    summary: Summary
    titles: dict[str, str]
    """Family -> the name a person reads."""


def kept_summary(folder: Path) -> KeptSummary | None:
    """None where there is none, or where something has changed since."""
    try:
        found = json.loads(_file(folder).read_bytes(), object_hook=_Kept)
        if found["made_from"] != _made_from(folder):
            return None
        # Where the run lies is said as the folder was given this time.
        summary = _Kept(found["summary"] | {"run": str(folder)})
        return KeptSummary(cast("Summary", summary), dict(found["titles"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_summary(folder: Path) -> KeptSummary:
    """The kept one, or computed and kept. Raises UserError."""
    if (kept := kept_summary(folder)) is not None:
        return kept
    from evalharness.records.store import read_manifest
    from evalharness.results.summary import earlier_timing, summarize

    titles = read_manifest(folder).titles
    found = keep_summary(folder, titles, lambda: summarize(folder, earlier_timing(folder)))
    return KeptSummary(found, titles)


def keep_summary(folder: Path, titles: dict[str, str], compute: Callable[[], Summary]) -> Summary:
    """What `compute` gives for the run, kept for the next time; not where it warned of damage, which is worth a line
    each time."""
    before = _made_from(folder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        summary = compute()
    for warning in caught:
        warnings.warn(warning.message, stacklevel=2)
    damaged = any(issubclass(warning.category, DamageWarning) for warning in caught)
    made_from = _made_from(folder)
    if not damaged and {**made_from, SUMMARY: None} == {**before, SUMMARY: None}:
        # A cache that cannot be written is no reason to trouble anybody.
        with contextlib.suppress(OSError, ValueError):
            _write(_file(folder), {"made_from": made_from, "titles": titles, "summary": summary.to_json()})
    return summary


def _write(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(value), durable=False)
    kept = sorted(path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
    for old in kept[:-_KEPT]:
        old.unlink(missing_ok=True)


def _file(folder: Path) -> Path:
    name = hashlib.sha256(str(real_path(folder)).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return cache_folder() / "summaries" / f"{name}.json"


def _made_from(folder: Path) -> dict[str, Any]:
    """Sizes and times, and the version."""
    return {
        **{name: _stamp(folder / name) for name in (MANIFEST, EPISODES, ERRORS, SUMMARY)},
        "ranges": [_stamp(file) for file in sorted(ranges_folder().glob("*.csv"))],
        "code": [__version__, _code_stamp()],
    }


def _code_stamp() -> str:
    """Of every module of the package, the environments' included: no list has to name those that count. 663 files take
    8 ms."""
    found = hashlib.sha256()
    for folder, folders, names in os.walk(Path(__file__).parents[1], followlinks=True):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".py"):
                found.update(f"{folder}/{name} {_stamp(Path(folder, name))}\n".encode())
    return found.hexdigest()


def _stamp(path: Path) -> list[int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ino]
