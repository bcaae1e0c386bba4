"""Read the tables of published files, and check the files in the data folder against these tables.

The table of an environment is its `published.json`, with paths and SHA-256 hashes. The project does not contain the
files themselves; the user imports them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from evalharness.base.reading import open_file, sha256_of

TABLE = "published.json"


class Download(BaseModel):
    """A file to download: an archive with published files, or a single published file."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    url: str
    save_as: str = Field(alias="as")
    """Path of the download in the folder `downloads`. The importer recognises a single file by the end of this path."""
    sha256: str | None = None
    """Hash of the download; None if the publisher gives no hash, so that only the unpacked files are checked."""
    size: str | None = None
    """Size that is printed before the download, for example `1.4 GB`."""


class Tasks(BaseModel):
    model_config = ConfigDict(extra="forbid")
    count: int
    any_of: list[str]
    """Names of the label files, which have one task per line. One of these files is enough."""


class Literals(BaseModel):
    """A file that the importer makes from constants in a publisher's Python file (`literals_as_json`)."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    found_in: str = Field(alias="from")
    """The end of the Python file's path."""
    names: list[str]


class PublishedFamily(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    family: str
    """The harness's name of the family, for example `sciworld`."""
    source: Path
    folder: str
    """Folder in `agentboard/`, for example `scienceworld`."""
    tasks: Tasks
    also_found_as: dict[str, str] = {}
    """Path prefix in the family's folder -> path prefix of the same files in another publication."""
    downloads: tuple[Download, ...] = ()
    literals: dict[str, Literals] = {}
    """File -> source code from which it is made. Such a file is optional, because label files have the same content."""
    files: dict[str, str | None]
    """Path of each file in the family's folder -> SHA-256 of the published file; None if it is not known."""

    def required(self) -> list[str]:
        """Return the files that must exist: all except label files (one is enough) and files from source code."""
        return [name for name in self.files if name not in self.tasks.any_of and name not in self.literals]

    def root(self, data: Path) -> Path:
        return data / "agentboard" / self.folder


def family_folders() -> dict[str, Path]:
    """Map each family to the folder of its code, sorted by family, without importing the code."""
    points = sorted(entry_points(group="evalharness.environments"), key=lambda point: point.name)
    modules = ((point.name, find_spec(point.module)) for point in points)
    return {name: Path(module.origin).parent for name, module in modules if module and module.origin}


@cache
def published() -> dict[str, PublishedFamily]:
    """Map each family with published files to its `published.json`, sorted by family."""
    tables = {family: folder / TABLE for family, folder in family_folders().items()}
    return {
        family: PublishedFamily(family=family, source=path, **json.loads(path.read_bytes()))
        for family, path in tables.items()
        if path.is_file()
    }


State = Literal["complete", "changed", "partial", "absent"]


@dataclass(frozen=True)
class FamilyCheck:
    """The comparison of a family's files with its `published.json`. File names are relative to the family's folder."""

    family: str
    folder: Path
    state: State
    tasks: int | None
    """Number of lines in the label file; None if there is no label file."""
    expected_tasks: int
    files: int
    """Number of files in `published.json` that exist in the data folder."""
    expected_files: int
    changed: tuple[str, ...]
    missing: tuple[str, ...]
    unverified: tuple[str, ...]
    """Existing files that cannot be checked, because `published.json` has no hash for them."""

    @property
    def ok(self) -> bool:
        return self.state == "complete"

    def to_json(self) -> dict[str, object]:
        return asdict(self) | {"folder": str(self.folder)}


def count_tasks(labels: Path) -> int:
    """Count the non-empty lines of a label file; each line is a task."""
    with open_file(labels) as file:
        return sum(1 for line in file if line.strip())


def check(family: PublishedFamily, data: Path) -> FamilyCheck:
    """Compare every file of one family with its `published.json`. All five families (46 MB) take less than a second."""
    root = family.root(data)
    existing = [name for name in family.files if (root / name).is_file()]
    changed = []
    unverified = []
    for name in existing:
        expected = family.files[name]
        if expected is None:
            unverified.append(name)
        elif sha256_of(root / name) != expected:
            changed.append(name)
    missing = [name for name in family.required() if name not in set(existing)]
    labels = [name for name in family.tasks.any_of if name in existing]
    if not labels:
        missing.insert(0, family.tasks.any_of[0])
    tasks = count_tasks(root / labels[0]) if labels else None
    if tasks is not None and tasks != family.tasks.count and labels[0] not in changed:
        changed.insert(0, labels[0])
    state: State = "complete"
    if not existing:
        state = "absent"
    elif missing:
        state = "partial"
    elif changed:
        state = "changed"
    return FamilyCheck(
        family=family.family,
        folder=root,
        state=state,
        tasks=tasks,
        expected_tasks=family.tasks.count,
        files=len(existing),
        expected_files=len(set(existing) | set(family.required())) + (not labels),
        changed=tuple(changed),
        missing=tuple(missing),
        unverified=tuple(unverified),
    )
