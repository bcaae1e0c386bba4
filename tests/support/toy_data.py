"""A small family of published data, as folders and archives, and its import."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

from evalharness.data.importer import import_published
from evalharness.data.table import PublishedFamily, Tasks

LABELS = b'{"id": 0}\n{"id": 1}\n'
GAME = b"\x05a story file"
DOMAIN = b"(define (domain toy))"


def family(**changes: object) -> PublishedFamily:
    """A small family with everything a real one has: labels, files in folders, a second name, unknown hashes."""
    files: dict[str, str | None] = {
        "labels.jsonl": hashlib.sha256(LABELS).hexdigest(),
        "official.jsonl": None,
        "roms/toy.z5": hashlib.sha256(GAME).hexdigest(),
        "toy.pddl": hashlib.sha256(DOMAIN).hexdigest(),
    }
    known = {
        "family": "toyworld",
        "folder": "toy",
        "tasks": Tasks(count=2, any_of=["official.jsonl", "labels.jsonl"]),
        "also_found_as": {"roms/": "game-suite/"},
        "downloads": (),
        "literals": {},
        "files": files,
        "source": Path("unused"),
    }
    return PublishedFamily(**{**known, **changes})  # type: ignore[arg-type]


OURS = {"toy/labels.jsonl": LABELS, "toy/roms/toy.z5": GAME, "toy/toy.pddl": DOMAIN}
OFFICIAL = {
    "toy/labels.jsonl": LABELS,
    "toy/machine-master/game-suite/toy.z5": GAME,
    "x/engine/toy/toy.pddl": DOMAIN,
}


def write_tree(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def write_archive(path: Path, files: dict[str, bytes]) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return path
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def bring(source: Path, data: Path, *, link: bool = False, toy: PublishedFamily | None = None) -> int:
    """Import the toy family and return how many files were taken."""
    toy = toy or family()
    return import_published(source, data, {toy.family: toy}, link=link)[toy.family].imported
