"""What the published files are: every path with its SHA-256, as each environment's `published.json` lists them.

The hashes are facts about files that the user supplies; the files themselves are never part of the project.
`evalharness/data/make_table.py` wrote the hashes, from a complete copy of the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from evalharness.data.families import family_folders

TABLE = "published.json"


class Download(BaseModel):
    """One file to fetch. An archive is unpacked afterwards; what it held is checked file by file."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    url: str
    save_as: str = Field(alias="as")
    """Path below the download folder; for a single file it ends like the path of the file in the data folder."""
    sha256: str | None = None
    """None where the publisher gives none: then only the unpacked files are checked."""
    size: str | None = None
    """Size to tell the person before the download starts, for example `1.4 GB`."""


class Tasks(BaseModel):
    model_config = ConfigDict(extra="forbid")
    count: int
    any_of: list[str]
    """Label files, one task a line; one of them is enough."""


class Literals(BaseModel):
    """A file made from the constants of a publisher's Python file (see `evalharness.data.importer`)."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    found_in: str = Field(alias="from")
    """How the Python file's path ends."""
    names: list[str]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")
    folder: str
    tasks: Tasks
    also_found_as: dict[str, str] = {}
    downloads: list[Download] = []
    literals: dict[str, Literals] = {}
    files: dict[str, str | None]


@dataclass(frozen=True)
class PublishedFamily:
    """The published files of one environment."""

    family: str
    """The harness's name, `sciworld`."""
    folder: str
    """The folder below `agentboard/`, `scienceworld`."""
    tasks: Tasks
    also_found_as: dict[str, str]
    """Path prefix in the folder -> another path prefix under which publishers ship the same files."""
    downloads: tuple[Download, ...]
    literals: dict[str, Literals]
    """Files made from a publisher's source code. Not required: the label files say the same where they are whole."""
    files: dict[str, str | None]
    """Path in the folder (posix) -> SHA-256, or None where no published hash is known."""
    source: Path

    def required(self) -> list[str]:
        """Every file but the label files, of which any one is enough, and what comes from source code."""
        return [name for name in self.files if name not in self.tasks.any_of and name not in self.literals]

    def root(self, data: Path) -> Path:
        return data / "agentboard" / self.folder


@cache
def published() -> dict[str, PublishedFamily]:
    """Every family that has published files, by name, sorted."""
    found = {}
    for family, folder in family_folders().items():
        path = folder / TABLE
        if not path.is_file():
            continue
        table = _Table.model_validate_json(path.read_bytes())
        found[family] = PublishedFamily(
            family=family,
            folder=table.folder,
            tasks=table.tasks,
            also_found_as=table.also_found_as,
            downloads=tuple(table.downloads),
            literals=table.literals,
            files=table.files,
            source=path,
        )
    return found
