"""Read the manifests of folders of judgements and labels, and count progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.reading import read_json
from evalharness.models.work import WorkProgress
from evalharness.records.store import MANIFEST
from evalharness.records.stored import refuse_later


@dataclass
class JudgeProgress(WorkProgress):
    unread: int = 0
    """Number of judge replies without a readable verdict or grade."""

    def details(self) -> list[str]:
        return [f"{self.unread} replies not readable"] if self.unread else []


def choose_own_folder(run: Path, *names: str) -> Path:
    """Return a folder below `run`. Raises UserError if it is a link: the run's author could choose where we write."""
    path = run
    for name in names:
        path /= name
        if path.is_symlink():
            raise UserError(
                f"{path} is a link, so files would be written to another folder; remove it: rm {path}"
            )
    return path


def read_kind(folder: Path, kind: str, make: str) -> dict[str, Any]:
    """Read the manifest of a folder of `kind`. Raises UserError that names the command `make` if there is none."""
    path = folder / MANIFEST
    try:
        manifest = read_json(path)
        refuse_later(path, manifest)
        stored_kind, digest = manifest["identity"]["kind"], manifest["identity"]["run_digest"]
        if stored_kind != kind or not isinstance(digest, str) or not isinstance(manifest["digest"], str):
            raise ValueError("its kind, digest or run_digest is wrong")
    except FileNotFoundError:
        raise UserError(f"{folder} holds no {kind} (make some with: {make})") from None
    except OSError as error:
        raise UserError(f"{path} is not readable: {error.strerror}") from None
    except KeyError as error:
        raise UserError(f"{path} does not describe {kind}: it has no {error}") from None
    except (ValueError, TypeError) as error:
        raise UserError(f"{path} does not describe {kind}: {error}") from None
    return dict(manifest)


def draws_of(manifest: Mapping[str, Any]) -> tuple[tuple[int | None, int], ...]:
    """Return (number of turns, seed) of each sample of turns in the manifest. The number None means all turns."""
    draws: dict[tuple[int | None, int], None] = {}
    starts = manifest.get("sessions")
    for start in starts if isinstance(starts, list) else []:
        match start:
            case {"drawn": {"turns": int() | None as turns, "seed": int(seed)}}:
                draws[turns, seed] = None
    return tuple(draws)
