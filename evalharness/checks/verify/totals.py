"""Recompute `summary.json` and the two tables from the episodes, and compare them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.reading import read_bytes, read_object
from evalharness.base.version import __version__
from evalharness.checks.verify.findings import Finding, is_same
from evalharness.records.episode import Episode
from evalharness.records.manifest import Manifest
from evalharness.records.store import SUMMARY
from evalharness.records.summary import Timing
from evalharness.results.score import EpisodeScore
from evalharness.results.summarize import summary_of
from evalharness.results.tables import list_recorded_rows, rows_of

_SHORT = 200
TABLES = ("episodes.parquet", "turns.parquet")


def summary_findings(
    folder: Path, manifest: Manifest, scores: Sequence[EpisodeScore]
) -> tuple[list[Finding], list[str]]:
    """Compare `summary.json` with the summary of the replayed episodes. Return (findings, notes)."""
    path = folder / SUMMARY
    try:
        stored = read_object(read_bytes(path))
    except FileNotFoundError:
        return [], [f"no {SUMMARY}: the run was not played to its end"]
    except (OSError, ValueError) as error:
        return [Finding("summary", SUMMARY, f"not readable ({error})")], []
    again = json.loads(json.dumps(summary_of(folder, manifest, scores).to_json()))
    from_replies = {"format_trouble", "refused_actions", "template_tokens", "unknown_marks"}
    ignored = {"run", "cost", "outside", "made_from", *from_replies, *Timing.model_fields}
    # Ignore values that cannot be computed from actions: the folder's path, times, warnings about replies.
    kept = [{key: value for key, value in each.items() if key not in ignored} for each in (stored, again)]
    return list(_differences(*kept, prefix="", older=_is_older(manifest))), []


def _is_older(manifest: Manifest) -> bool:
    """Return whether another version of evalharness played the last session of the run."""
    return manifest.sessions[-1].evalharness != __version__


def _differences(
    stored: Mapping[str, Any], again: Mapping[str, Any], *, prefix: str, older: bool
) -> Iterator[Finding]:
    """Yield a finding for each number that differs. Skip a key that the stored summary lacks. If `older` (another
    version wrote the summary), also skip a key that this version lacks. Never skip a family."""
    for key in sorted(stored.keys() | again.keys()):
        unknown = key not in stored or (older and key not in again)
        if unknown and prefix != "families.":
            continue
        one, other = stored.get(key), again.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _differences(one, other, prefix=f"{prefix}{key}.", older=older)
        elif not is_same(one, other):
            yield Finding("summary", f"{SUMMARY}, {prefix}{key}", "another number", one, other)


def _shorten(value: Any) -> Any:
    """Return a short value unchanged. Replace a long text by its beginning, length and SHA-256, to save memory."""
    if isinstance(value, str) and len(value) > _SHORT:
        digest = hashlib.sha256(value.encode(errors="replace")).hexdigest()
        return f"{value[:20]}... ({len(value)} characters, SHA-256 {digest})"
    return value


class Tables:
    """Compares `episodes.parquet` and `turns.parquet` of a folder with the episodes, if the files exist."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._older = _is_older(manifest)
        self._of_run = {"model": manifest.display_name, "perturbation": manifest.config.perturb}
        self.findings: list[Finding] = []
        self._rows: dict[str, dict[Any, dict[str, Any]]] = {}
        for name, key in ((TABLES[0], ("task_id", "sample")), (TABLES[1], ("task_id", "sample", "turn"))):
            if (folder / name).exists():
                self._read(folder / name, key)

    def _read(self, path: Path, key: Sequence[str]) -> None:
        import pyarrow.parquet as pq
        from pyarrow.lib import ArrowException

        rows: dict[Any, dict[str, Any]] = {}
        try:
            with pq.ParquetFile(path) as file:
                count = file.metadata.num_rows
                for batch in file.iter_batches(batch_size=1000):
                    for row in batch.to_pylist():
                        place = tuple(row[name] for name in key)
                        rows[place] = {name: _shorten(value) for name, value in row.items()}
        except (ArrowException, OSError, KeyError, ValueError, TypeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            self.findings.append(Finding("table", path.name, f"not readable ({reason})"))
            return
        if count != len(rows):
            self.findings.append(Finding("table", path.name, "rows of one episode twice", count, len(rows)))
        self._rows[path.name] = rows

    def check(self, episode: Episode) -> None:
        """Compare an episode with its rows in the tables, and remove these rows, so that extra rows remain."""
        if not self._rows:
            return
        key = (episode.task_id, episode.sample)
        try:
            whole, turns = (list_recorded_rows if self._older else rows_of)(episode)
        except UserError:  # the perturbation is unknown, which `task_findings` reports
            whole, turns = list_recorded_rows(episode)
        self._take(TABLES[0], key, whole | self._of_run)
        for turn in turns:
            self._take(TABLES[1], (*key, turn["turn"]), turn | self._of_run)

    def _take(self, name: str, key: tuple[Any, ...], wanted: Mapping[str, Any]) -> None:
        if name not in self._rows:
            return
        where = f"{name}, {key[0]}, sample {key[1]}" + (f", turn {key[2]}" if len(key) > 2 else "")
        row = self._rows[name].pop(key, None)
        if row is None:
            self.findings.append(Finding("table", where, "no row"))
            return
        # Skip columns that only one side has, because another version wrote the table.
        for column in (column for column in wanted if column in row):
            if not is_same(row[column], _shorten(wanted[column])):
                self.findings.append(Finding("table", where, column, row[column], _shorten(wanted[column])))

    def end(self) -> list[Finding]:
        """Return all findings. Call it after `check` of the last episode: the rows that remain belong to no episode."""
        for name, rows in self._rows.items():
            if rows:
                count = f"{len(rows)} row{'s' if len(rows) > 1 else ''}"
                text = f"{count} without an episode, the first one of {min(map(str, rows))}"
                self.findings.append(Finding("table", name, text))
        return self.findings
