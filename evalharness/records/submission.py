"""A submission to a leaderboard: a folder with runs and what their submitter says of them.

| file | what it holds |
|---|---|
| `metadata.yaml` | who submits, when, families the model was trained on, each run with the SHA-256 of its files |
| `runs/NAME/` | a run folder with `manifest.json`, `episodes.jsonl`, `errors.jsonl`, `summary.json` |

It comes from somebody else: every path must lead into it, nothing in it may be a link, and what it says of its own
verification counts for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from evalharness.base.errors import UserError, system_errors
from evalharness.base.reading import sha256_of
from evalharness.base.yaml_lines import load_model
from evalharness.records.store import EPISODES, ERRORS, MANIFEST, SUMMARY

METADATA = "metadata.yaml"
RUNS = "runs"
FILES = (MANIFEST, EPISODES, ERRORS, SUMMARY)
"""Of a run, `errors.jsonl` only where something failed."""
_HASH = re.compile("[0-9a-f]{64}")


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"{text!a} holds characters that steer a terminal or turn text around")
    return text


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
Family = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,40}$")]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class SubmittedRun(_Shape):
    """A run of a submission."""

    folder: Name
    """Below the submission's folder, with `/`."""
    name: Name
    suite: Name
    perturbation: Name | None = None
    files: dict[str, str]
    """Name -> SHA-256."""

    @field_validator("folder")
    @classmethod
    def _leads_into_the_submission(cls, folder: str) -> str:
        parts = folder.split("/")
        if (
            PurePosixPath(folder).is_absolute()
            or "\\" in folder
            or "\0" in folder
            or {"", ".", ".."} & set(parts)
        ):
            raise ValueError(f"{folder!r} does not lead into the submission")
        return folder

    @field_validator("files")
    @classmethod
    def _are_files_of_a_run(cls, files: dict[str, str]) -> dict[str, str]:
        for name, sha in files.items():
            if name not in FILES or not _HASH.fullmatch(sha):
                raise ValueError(f"{name!r} is no file of a run with its SHA-256")
        if absent := {MANIFEST, EPISODES} - files.keys():
            raise ValueError(f"{min(absent)} is not among them")
        return files


class Metadata(_Shape):
    """What the submitter says."""

    schema_: Literal[1] = Field(alias="schema", default=1)
    name: Name
    """Of the method or model."""
    organization: Name | None = None
    site: Name | None = None
    oss: bool | None = None
    """The model or method is open source."""
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    verified: bool = False
    """Whoever publishes a leaderboard decides that; here it is always false, and never read."""
    held_in: list[Family] = []
    """Families that the model was trained on."""
    model_text: bool = True
    """The replies are there, not the actions alone."""
    evalharness: Name
    runs: Annotated[list[SubmittedRun], Field(min_length=1, max_length=1000)]

    @field_validator("site")
    @classmethod
    def _is_an_address(cls, site: str | None) -> str | None:
        if site is not None and not re.fullmatch(r"https?://[^\s\"'<>]+", site):
            raise ValueError("give an address that begins with https://")
        return site


@dataclass(frozen=True)
class Submission:
    folder: Path
    metadata: Metadata

    def run_folder(self, run: SubmittedRun) -> Path:
        return self.folder / run.folder


def write_metadata(folder: Path, metadata: Metadata) -> None:
    """Raises OSError."""
    data = metadata.model_dump(mode="json", by_alias=True, exclude_none=True)
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=False, width=100)
    (folder / METADATA).write_text(text, encoding="utf-8")


def read_submission(folder: Path) -> Submission:
    """Read and check a submission: shape, paths, the hash of every file. Nothing is replayed.

    Raises UserError.
    """
    path = folder / METADATA
    _require_plain(folder, path)
    missing = f"{folder} is not a submission: it has no {METADATA}"
    metadata, _ = load_model(path, Metadata, str(path), missing)
    if len({run.folder for run in metadata.runs}) < len(metadata.runs):
        raise UserError(f"{path}: two runs have the same folder")
    for run in metadata.runs:
        _check_files(folder, run)
    return Submission(folder, metadata)


def _check_files(folder: Path, run: SubmittedRun) -> None:
    place = folder / run.folder
    for name, expected in run.files.items():
        path = place / name
        _require_plain(folder, path)
        with system_errors(f"{path} is not readable"):
            found = sha256_of(path)
        if found != expected:
            raise UserError(f"{path} is not the file that was submitted: another SHA-256 than in {METADATA}")
    listed = set(run.files)
    with system_errors(f"{place} is not readable"):
        more = sorted(entry.name for entry in place.iterdir() if entry.name not in listed)
    if more:
        raise UserError(f"{place} holds {more[0]!r}, which {METADATA} does not list")


def _require_plain(folder: Path, path: Path) -> None:
    """Raises UserError where a step from `folder` to `path` is a link: it could lead anywhere."""
    steps = [path, *path.parents]
    for step in steps[: steps.index(folder)]:
        if step.is_symlink():
            raise UserError(f"{step} is a link; a submission holds files only")
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is not a plain file")


def submissions_in(folders: Sequence[Path]) -> list[Path]:
    """Each folder that is a submission, or else the submissions right below it. Raises UserError where none is."""
    found: list[Path] = []
    for folder in folders:
        if (folder / METADATA).is_file():
            found.append(folder)
            continue
        with system_errors(f"cannot read {folder}"):
            inside = sorted(entry for entry in folder.iterdir() if (entry / METADATA).is_file())
        if not inside:
            raise UserError(f"{folder} is not a submission and holds none (no {METADATA})")
        found += inside
    return found
