"""Read AgentBoard's label files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalharness.base.reading import read_text
from evalharness.envs.task import InvalidTaskError, MissingDataError

FIX = "bring it in with: evalharness data import DIR (or: evalharness data fetch)"


def folder_of(data: Path | None, name: str, title: str) -> Path:
    """Return a family's folder in the user's data. Raise MissingDataError if it does not exist."""
    if data is None:
        raise MissingDataError(f"the published {title} tasks need the benchmark's data")
    return data / "agentboard" / name


def label_rows(folder: Path, title: str, name: str = "test.jsonl") -> list[dict[str, Any]]:
    """Read a label file. Raise MissingDataError if it does not exist, InvalidTaskError if it is invalid."""
    path = folder / name
    try:
        return [json.loads(line) for line in read_text(path).split("\n") if line.strip()]
    except FileNotFoundError:
        raise MissingDataError(f"{title}'s labels are not at {path}") from None
    except ValueError as error:
        raise InvalidTaskError(f"{path} is not JSON Lines ({error}); {FIX}") from None
