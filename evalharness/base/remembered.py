"""Numbers by name in a file of the user's cache: only remembered, never needed."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

from evalharness.base.paths import cache_folder, write_whole
from evalharness.base.reading import read_known


@dataclass(frozen=True)
class RememberedNumbers:
    file: str
    most: int
    """The oldest go first."""

    @property
    def path(self) -> Path:
        return cache_folder() / self.file

    def all(self) -> dict[str, float]:
        """What is not readable is as good as nothing."""
        try:
            return {key: float(value) for key, value in read_known(self.path).items()}
        except (ValueError, TypeError):
            return {}

    def note(self, key: str, value: float) -> None:
        """As the newest. A cache that cannot be written is no reason to trouble anybody."""
        known = self.all()
        known.pop(key, None)
        known[key] = value
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, json.dumps(dict(list(known.items())[-self.most :])), durable=False)
