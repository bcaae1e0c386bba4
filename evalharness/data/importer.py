"""Import published files into the data folder from a folder of any layout, or from an archive.

Files are recognised by the end of their path and checked by hash. So the source may be another data folder, the
official archive, or an AgentBoard checkout. The files of a family are copied into a temporary folder, which then
replaces the old folder. So an interrupted import keeps the old files, and the next import continues it.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from evalharness.base.errors import UserError
from evalharness.base.locks import hold_lock
from evalharness.base.paths import real_path
from evalharness.base.reading import sha256_of
from evalharness.data.source import Entry, is_archive, walk
from evalharness.data.table import FamilyCheck, PublishedFamily, check

MAX_BYTES = 2**20


def literals_as_json(source: Path, names: Collection[str]) -> bytes:
    """Return the constants `names` of a Python file as JSON `{name: value}`. Raise UserError if a constant is
    missing."""
    try:
        if source.stat().st_size > MAX_BYTES:
            raise ValueError(f"over {MAX_BYTES} bytes")
        literals = {}
        for statement in ast.parse(source.read_bytes()).body:
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    if isinstance(target, ast.Name) and target.id in names:
                        literals[target.id] = ast.literal_eval(statement.value)
        if missing := sorted(set(names) - set(literals)):
            raise ValueError(f"no constant {', '.join(missing)}")
        return (json.dumps(literals, indent=1, sort_keys=True) + "\n").encode()
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise UserError(
            f"cannot read the constants {', '.join(sorted(names))} from the source: {error}"
        ) from error


@dataclass(frozen=True)
class FamilyImport:
    """The result of an import for one family, with a check of the family's files after the import."""

    imported: int
    """Number of files that were copied. Files that were already correct are not copied again."""
    check: FamilyCheck


def import_published(
    source: Path, data: Path, families: Mapping[str, PublishedFamily], *, link: bool = False
) -> dict[str, FamilyImport]:
    """Import the files of `families` from `source` (a folder or an archive) into the data folder.

    `link`: make symbolic links to the source's files instead of copies (files in an archive are copied). A file whose
    hash differs from the published hash is imported, too, so that the user can play with changed data; the check then
    reports it as changed. Raise UserError if the import fails.
    """
    source = source.expanduser()
    if not source.exists():
        raise UserError(f"{source} does not exist")
    if link and not source.is_dir():
        raise UserError(f"{source} is an archive: import it without --link, which needs a folder")
    try:
        data.mkdir(parents=True, exist_ok=True)
        with lock_import(data):
            return _import(source, data, families, link)
    except OSError as error:
        raise UserError(
            f"the import into {data} stopped: {error}; fix this and run the same command again"
        ) from error


def _import(
    source: Path, data: Path, families: Mapping[str, PublishedFamily], link: bool
) -> dict[str, FamilyImport]:
    stages = {name: _Stage(family, data, link) for name, family in families.items()}
    published_paths = _PublishedPaths(families)
    archives = []
    matched = False
    for entry in walk(source, skip=real_path(data)):
        for name, file in published_paths.of(entry.name):
            matched = True
            stages[name].offer(file, entry)
        if entry.path is not None and is_archive(entry.path):
            archives.append(entry.path)
    # Open archives in the source folder itself or in a folder with a family's name, and only while files are missing.
    folders = {family.folder for family in families.values()}
    for archive in archives:
        if archive.parent.name in folders or archive.parent == real_path(source):
            if all(stage.complete() for stage in stages.values()):
                break
            for entry in walk(archive):
                for name, file in published_paths.of(entry.name):
                    matched = True
                    stages[name].offer(file, entry)
    if not matched:
        examples = ", ".join(f"{family.folder}/{family.tasks.any_of[0]}" for family in families.values())
        raise UserError(
            f"{source} has none of the published files ({examples}); name the folder or archive that has these files"
        )
    results = {
        name: FamilyImport(imported=stage.finish(), check=check(families[name], data))
        for name, stage in stages.items()
    }
    for empty in (data / ".importing", data / ".replaced"):
        with suppress(OSError):
            empty.rmdir()
    return results


class _PublishedPaths:
    """Maps the path of a file in a source to the published files whose known path it ends with."""

    def __init__(self, families: Mapping[str, PublishedFamily]) -> None:
        self.by_tail: dict[str, list[tuple[str, str, str]]] = {}
        for name, family in families.items():
            for file in family.files:
                ends = [f"{family.folder}/{file}"] if file not in family.literals else []
                for prefix, other in family.also_found_as.items():
                    if file.startswith(prefix):
                        ends.append(other + file.removeprefix(prefix))
                if file in family.literals:
                    ends.append(family.literals[file].found_in)
                for end in ends:
                    self.by_tail.setdefault(_tail(end), []).append((end, name, file))

    def of(self, path: str) -> list[tuple[str, str]]:
        """Return the published files that `path` can be, as pairs (family, file name in the family's folder)."""
        pairs = {
            (name, file): None
            for end, name, file in self.by_tail.get(_tail(path), ())
            if path == end or path.endswith("/" + end)
        }
        return list(pairs)


def _tail(path: str) -> str:
    return "/".join(path.rsplit("/", 2)[-2:])


class _Stage:
    """The import of one family into its temporary folder in `<data>/.importing`."""

    def __init__(self, family: PublishedFamily, data: Path, link: bool) -> None:
        self.family = family
        self.link = link
        self.root = family.root(data)
        self.staging = data / ".importing" / family.folder
        self.replaced = data / ".replaced" / family.folder
        if self.replaced.exists() or self.replaced.is_symlink():
            # An earlier import was killed during `finish`. Keep the new folder if it was in place, else restore the
            # old.
            if self.root.exists():
                _remove(self.replaced)
            else:
                self.replaced.rename(self.root)
        for part in self.staging.rglob("*.part"):
            part.unlink()
        self.correct: set[str] = set()
        """Names of the files that are correct in the data folder or in the temporary folder."""
        self.staged: set[str] = set()
        for name in family.files:
            if self._is_correct(self.root / name, name):
                self.correct.add(name)
            if (self.staging / name).exists():
                if self._is_correct(self.staging / name, name) and name not in self.correct:
                    self.correct.add(name)
                    self.staged.add(name)
                else:
                    (self.staging / name).unlink()

    def _is_correct(self, path: Path, name: str) -> bool:
        expected = self.family.files[name]
        return expected is not None and path.is_file() and sha256_of(path) == expected

    def complete(self) -> bool:
        labels = any(name in self.correct or name in self.staged for name in self.family.tasks.any_of)
        return labels and self.correct.issuperset(self.family.required())

    def offer(self, name: str, entry: Entry) -> None:
        """Copy a file unless a correct copy exists. If no copy is correct, the first one is kept."""
        if name in self.correct:
            return
        target = self.staging / name
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")
        part.unlink(missing_ok=True)
        if name in self.family.literals:
            entry.copy_to(part)
            part.write_bytes(literals_as_json(part, self.family.literals[name].names))
        elif self.link and entry.path is not None:
            part.symlink_to(entry.path.absolute())
        else:
            entry.copy_to(part)
        is_correct = self._is_correct(part, name)
        if is_correct or name not in self.staged:
            part.replace(target)
            self.staged.add(name)
        else:
            part.unlink()
        if is_correct:
            self.correct.add(name)

    def finish(self) -> int:
        """Replace the family's folder by one with old and imported files. Return the number of imported files."""
        if not self.staged:
            _remove(self.staging)
            return 0
        if self.root.exists():
            for parent, folders, names in os.walk(self.root):
                linked = [name for name in folders if (Path(parent) / name).is_symlink()]
                for old in (Path(parent) / name for name in [*names, *linked]):
                    new = self.staging / old.relative_to(self.root)
                    if not new.exists() and not new.is_symlink():
                        new.parent.mkdir(parents=True, exist_ok=True)
                        shutil.copy2(old, new, follow_symlinks=False)
            self.replaced.parent.mkdir(exist_ok=True)
            self.root.rename(self.replaced)
        self.root.parent.mkdir(exist_ok=True)
        self.staging.rename(self.root)
        _remove(self.replaced)
        return len(self.staged)


def _remove(path: Path) -> None:
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def lock_import(folder: Path) -> IO[bytes]:
    """Lock the folder and return the lock's file; closing it unlocks. Raise UserError during another import."""
    return hold_lock(folder / ".lock", f"another import into {folder} is running; wait for it to end")


def require_known(
    names: Collection[str], families: Mapping[str, PublishedFamily]
) -> dict[str, PublishedFamily]:
    """Return the families in `names` (names of families or of their folders); all families if `names` is empty."""
    if not names:
        return dict(families)
    by_name = {**{family.folder: family for family in families.values()}, **families}
    if unknown := sorted(set(names) - set(by_name)):
        raise UserError(f"unknown family {', '.join(unknown)}; known: {', '.join(families)}")
    chosen = {by_name[name].family for name in names}
    return {name: family for name, family in families.items() if name in chosen}
