"""Read and write a run folder. One process writes at a time.

| file | content |
|---|---|
| `manifest.json` | description of the run: configuration, digest, versions, content hashes, model identity, seeds |
| `config.yaml` | value of every option |
| `episodes.jsonl` | one finished episode per line, synced to disk before the next one |
| `errors.jsonl` | every failed try (infrastructure failures) |
| `server.log`, `workers.log` | output of the model server and of the simulators |
| `handouts.jsonl`, `agent.log` | for external agents: the tasks given to them, and the output of their processes |
| `summary.json` | the scores |
| `episodes.parquet`, `turns.parquet` | the same episodes for analysis |
"""

from __future__ import annotations

import contextlib
import json
import re
import time
import warnings
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from evalharness.base.errors import DamageWarning, InfrastructureError, UserError, system_errors
from evalharness.base.locks import hold_lock
from evalharness.base.paths import write_whole
from evalharness.base.reading import read_bytes, read_json, read_object
from evalharness.records.episode import Episode, read_episode
from evalharness.records.files import EPISODES as EPISODES
from evalharness.records.files import ERRORS as ERRORS
from evalharness.records.files import LOCK as LOCK
from evalharness.records.files import MANIFEST as MANIFEST
from evalharness.records.files import STUDY
from evalharness.records.files import SUMMARY as SUMMARY
from evalharness.records.identity import changes, digest, other_answerers, with_words_of
from evalharness.records.lines import LineFile, locate_lines, read_lines
from evalharness.records.manifest import Manifest, RepeatCheck
from evalharness.records.stored import Count, Stored, refuse_later

EpisodeKey = tuple[str, int]
"""(task id, sample): identifies an episode within a run. Model, prompt, sampling and perturbation are the same for the
whole run; its manifest contains them."""


def write_atomically(path: Path, text: str) -> None:
    """Replace the content of `path`; if writing fails, the old content stays."""
    try:
        write_whole(path, text)
    except OSError as error:
        raise InfrastructureError(f"cannot write {path}: {error.strerror}") from error


class _Failure(Stored):
    task_id: str
    sample: Count
    final: bool = False


def _read_failure(line: bytes) -> dict[str, Any]:
    value = read_object(line)
    _Failure.of(value)
    return value


def read_failures(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield every failed try of a run; errors as in `read_lines`."""
    return read_lines(folder / ERRORS, "failed episodes are tried again", _read_failure)


def locate_episodes(folder: Path) -> Iterator[tuple[int, Episode]]:
    """Yield (offset of the line, episode) for every finished episode of a run folder, in the order of finishing.

    Errors are those of `locate_lines`. If an episode is stored twice, skip the second and warn with a DamageWarning.
    """
    path = folder / EPISODES
    first: dict[EpisodeKey, int] = {}
    again: list[str] = []
    for number, offset, episode in locate_lines(path, "the episode is played anew", read_episode):
        key = (episode.task_id, episode.sample)
        if key in first:
            again.append(f"line {number} repeats {key[0]}, sample {key[1]}, of line {first[key]}")
            continue
        first[key] = number
        yield offset, episode
    if again:
        more = f", and {len(again) - 1} more" if len(again) > 1 else ""
        warnings.warn(
            f"{path} is damaged: {again[0]}{more}; each episode counts once, by its first line",
            DamageWarning,
            stacklevel=2,
        )


def read_episodes(folder: Path) -> Iterator[Episode]:
    """Yield each finished episode of a run folder once, in the order of finishing; errors as in `locate_episodes`."""
    for _, episode in locate_episodes(folder):
        yield episode


def find_manifest(folder: Path) -> Manifest | None:
    """Read the manifest of a folder; return None if there is no manifest. Raise UserError as `read_manifest` does."""
    return read_manifest(folder) if (folder / MANIFEST).exists() else None


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a run folder. Raise UserError if `folder` has no run, or if the manifest is damaged."""
    path = folder / MANIFEST
    try:
        stored = read_object(read_bytes(path))
        refuse_later(path, stored)
        manifest = Manifest.of(stored)
        if not manifest.counts:
            raise ValueError("counts names no family")
        return manifest
    except (FileNotFoundError, NotADirectoryError):
        why = (
            f"contains a study; name one of its runs: {folder}/RUN"
            if (folder / STUDY).is_file()
            else f"is not a run folder: it has no {MANIFEST}"
            if folder.exists()
            else "does not exist"
        )
        raise UserError(f"{folder} {why}") from None
    except OSError as error:
        raise UserError(f"{path} is not readable: {error.strerror}") from None
    except ValueError as error:
        raise UserError(
            f"{path} is damaged ({error}); restore it, or run again into another folder with -o DIR"
        ) from None


_LEFT_BEHIND = re.compile(r"\.lock|\..*\.tmp|server(-\d+)?\.log|workers\.log|episodes\.jsonl")
"""Files that a run may leave in its folder if it is killed before it has written its manifest."""


def require_own_folder(folder: Path, mark: str, expected: Collection[str] = ()) -> None:
    """Raise UserError unless `folder` is new, empty, or made by this package: then it contains the file `mark`.

    `expected`: names of files that are allowed without `mark`, in addition to `_LEFT_BEHIND`.
    """
    try:
        if not folder.exists() or (folder / mark).exists():
            return
        foreign = sorted(
            entry.name
            for entry in folder.iterdir()
            if not _LEFT_BEHIND.fullmatch(entry.name) and entry.name not in expected
        )
    except NotADirectoryError:
        raise UserError(f"{folder} is a file; choose a folder with -o DIR") from None
    except OSError as error:
        raise UserError(f"cannot use {folder}: {error.strerror}; choose another folder with -o DIR") from None
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise UserError(
            f"{folder} is not empty and has no {mark}: there is {foreign[0]!r}{more}; "
            "choose a new folder with -o DIR"
        )


def require_no_links(folder: Path) -> None:
    """Raise UserError if the folder contains a link: writing through a link could change a file elsewhere."""
    links: list[Path] = []
    with contextlib.suppress(OSError):  # `require_own_folder` reports the error
        links = sorted(entry for entry in folder.iterdir() if entry.is_symlink())
    if links:
        raise UserError(
            f"{links[0]} is a link, so writing to it would change a file elsewhere; replace it by a copy of that file, "
            "or choose another folder"
        )


@contextlib.contextmanager
def lock_folder(folder: Path, mark: str) -> Iterator[None]:
    """Hold the folder's lock. Make the folder if it is missing. Remove a new folder that has no file `mark` at the end:
    a refused run leaves nothing. Raise UserError if another process holds the lock."""
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    other = f"another evalharness is writing to {folder}; wait for it, or choose another folder with -o DIR"
    with system_errors(f"cannot write to {folder}", "; choose another with -o DIR"):
        lock = hold_lock(folder / LOCK, other)
    try:
        yield
    finally:
        if not (folder / mark).exists():
            (folder / LOCK).unlink(missing_ok=True)
            for path in created:
                with contextlib.suppress(OSError):
                    path.rmdir()
        lock.close()


_JOIN = "; to add tasks, name the old tasks in --tasks, too"


class RecordFolder:
    """Writer of a folder of JSON lines that can be continued. As a context manager it holds the folder's lock.
    `RunStore` stores episodes; subclasses for other work store other records.
    """

    lines: tuple[str, ...] = ()
    """Names of the files of JSON lines. The first file has the results, such as episodes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = {name: LineFile(folder / name) for name in self.lines}
        self._held = contextlib.ExitStack()

    def __enter__(self) -> Self:
        require_own_folder(self.folder, MANIFEST, self.lines)
        require_no_links(self.folder)
        self._held.enter_context(lock_folder(self.folder, MANIFEST))
        return self

    def __exit__(self, *exception: object) -> None:
        for file in self._files.values():
            file.close()
        self._held.close()

    def load_or_refuse(self, manifest: Mapping[str, Any], smaller: Mapping[str, Any] | None = None) -> None:
        """Load the records of earlier starts, and remove an incomplete last line. `smaller`: identity of the same run
        over fewer tasks; if the folder contains that run, this run continues it with more tasks.

        Raise UserError with the differences if the folder contains a run with another configuration.
        """
        if not (self.folder / MANIFEST).exists():
            if (self.folder / self.lines[0]).exists():
                raise UserError(
                    f"{self.folder} contains {self.lines[0]} but no {MANIFEST}; choose another folder with -o DIR"
                )
            return
        earlier = self.manifest()
        before = earlier.get("identity", {})
        wanted = [manifest["identity"], *([smaller] if smaller is not None else [])]
        if changed := min((changes(before, each) for each in wanted), key=len):
            another_model = all(line.startswith("model.") for line in changed)
            raise UserError(
                f"{self.folder} holds a run of another {'model' if another_model else 'configuration'}:\n  "
                + "\n  ".join(changed)
                + "\nchoose another folder with -o DIR, or "
                + ("serve that model" if another_model else "give the same options")
                + " to continue that run"
                + _JOIN * any(line.startswith("--tasks") for line in changed)
            )
        for path in self.folder.glob(".*.tmp"):  # a killed process left these
            path.unlink()
        for file in self._files.values():
            file.drop_torn_line()
        self.load()

    def load(self) -> None:
        """Read the folder's content, after `load_or_refuse` has checked that this run may continue it."""

    def manifest(self) -> dict[str, Any]:
        """Return the manifest of an earlier start. Raise UserError if it is damaged."""
        path = self.folder / MANIFEST
        try:
            manifest = read_json(path)
            refuse_later(path, manifest)
            if not isinstance(manifest.get("identity"), dict) or not isinstance(
                manifest.get("sessions"), list
            ):
                raise ValueError("no identity, or no sessions")
        except (OSError, ValueError, AttributeError, RecursionError) as error:
            raise UserError(
                f"{path} is damaged ({error}); restore it, or choose another folder with -o DIR"
            ) from None
        return dict(manifest)

    def begin(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest. For a continued run, add this start and the new number of samples."""
        path = self.folder / MANIFEST
        if path.exists():
            earlier = self.manifest()
            # A run that continues with more tasks has new counts and descriptions.
            described = {key: manifest[key] for key in _OF_TASKS if key in manifest}
            manifest = {
                **earlier,
                **described,
                "identity": (identity := with_words_of(earlier["identity"], manifest["identity"])),
                "digest": digest(identity),
                "sessions": [*earlier["sessions"], *manifest["sessions"]],
            }
        self.write(manifest)

    def write(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest. Raise UserError if another model answers the last start than the earlier starts."""
        if changed := other_answerers(manifest["sessions"]):
            raise UserError(
                f"the replies now name another model than those in {self.folder}:\n  "
                + "\n  ".join(changed)
                + "\nserve that model again, or choose another folder with -o DIR"
            )
        write_atomically(self.folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")

    def notice(self, text: str) -> None:
        """Add a warning about the scores to the last start in the manifest."""
        manifest = self.manifest()
        last = manifest["sessions"][-1]
        last["noticed"] = [*last.get("noticed", []), text]
        self.write(manifest)

    def append_line(self, name: str, value: Mapping[str, Any]) -> None:
        """Append a line to the file `name`; errors as in `LineFile.append`."""
        self._files[name].append(value)

    def append_failure(
        self, about: Mapping[str, Any], attempt: int, error: InfrastructureError, final: bool
    ) -> None:
        """Record one failed try. `about` identifies the work. `final`: there will be no other try."""
        self.append_line(
            ERRORS,
            {
                "time": time.time(),
                **about,
                "attempt": attempt,
                "kind": type(error).__name__,
                "error": str(error),
                "final": final,
                **error.details(),
            },
        )


_OF_TASKS = ("counts", "expected", "titles", "labels", "scores", "draw", "provenance")
"""Keys of a manifest that depend on the tasks."""


class RunStore(RecordFolder):
    lines = (EPISODES, ERRORS)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.done: set[EpisodeKey] = set()

    def manifest(self) -> dict[str, Any]:
        return read_manifest(self.folder).to_json()

    def load(self) -> None:
        self.done = {(e.task_id, e.sample) for e in read_episodes(self.folder)}

    def note_labels(self, labels: Mapping[str, str]) -> None:
        """Add labels to the last start. A command does this if no episode is left to play."""
        manifest = read_manifest(self.folder)
        if labels.items() <= manifest.user_labels.items():
            return
        *earlier, last = manifest.sessions
        last = last.model_copy(update={"label": {**(last.label or {}), **labels}})
        labelled = manifest.model_copy(update={"sessions": [*earlier, last]})
        write_atomically(self.folder / MANIFEST, json.dumps(labelled.to_json(), indent=2) + "\n")

    def note_repeat_check(self, check: RepeatCheck) -> None:
        """Add the result of `--repeat-check` to the last start in the manifest."""
        manifest = self.manifest()
        manifest["sessions"][-1]["repeat_check"] = check.to_json()
        self.write(manifest)

    def append(self, episode: Episode) -> None:
        """Store a finished episode. Raise StoreError if writing fails."""
        key = (episode.task_id, episode.sample)
        if key in self.done:
            raise ValueError(f"episode {key} is already stored")
        self.append_line(EPISODES, episode.to_json())
        self.done.add(key)
