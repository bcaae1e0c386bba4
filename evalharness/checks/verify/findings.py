"""Define findings: values in a run folder that do not follow from its actions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isclose
from pathlib import Path
from typing import Any, Literal

Kind = Literal[
    "manifest",
    "missing",
    "added",
    "repeated",
    "damaged",
    "task",
    "reply",
    "replay",
    "score",
    "summary",
    "table",
    "option",
]
"""What a finding reports. `missing`: an episode of the run is missing. `added`: an episode does not belong to the run.
`reply`: an action or thought differs from its reply. `replay`: the environment answers differently. `score`: the
episode's outcome differs. `option`: a turn or a file contradicts the run's options."""
_SHOWN = 120
"""Maximum length of a value in a message."""


@dataclass(frozen=True)
class Finding:
    kind: Kind
    where: str
    """For example `babyai/open/003, sample 0, turn 5`, or a key of a file."""
    what: str
    recorded: Any = None
    found: Any = None
    """The value that the replay or the recomputation gave, in contrast to `recorded`."""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}"
        if self.recorded is None and self.found is None:
            return text
        return f"{text}: {_short(self.recorded)} recorded, {_short(self.found)} found"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


@dataclass(frozen=True)
class FolderCheck:
    folder: Path
    episodes: int
    turns: int
    seconds: float
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    """Remarks on facts that were not checked, or that explain a difference. They do not affect `verified`."""
    failures: tuple[str, ...] = ()
    """A line for each episode that could not be replayed, because its simulator failed on this machine."""

    @property
    def verified(self) -> bool:
        """Whether the replay and the recomputation gave the recorded values, for every episode."""
        return not self.findings and not self.failures

    def to_json(self) -> dict[str, Any]:
        return {"verified": self.verified} | asdict(self) | {"folder": str(self.folder)}


def is_same(recorded: Any, found: Any) -> bool:
    """Return whether the values are equal, except for rounding errors."""
    if isinstance(recorded, bool) or isinstance(found, bool):
        return recorded is found
    if isinstance(recorded, int | float) and isinstance(found, int | float):
        return isclose(recorded, found, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(recorded, Sequence) and isinstance(found, Sequence) and not isinstance(recorded, str):
        return len(recorded) == len(found) and all(map(is_same, recorded, found))
    return bool(recorded == found)
