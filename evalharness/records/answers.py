"""Store answers that belong to no run, for example a judge's; an interrupted command can continue the folder later.

| file | content |
|---|---|
| `manifest.json` | prompt with version and hash, model, sampling; and every start of the command |
| a file that the subclass names | one answer per line, synced to disk at once |
| `errors.jsonl` | every failed try (infrastructure failures) |
| `server.log` | output of the model's server |
"""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalharness.base.errors import InfrastructureError
from evalharness.base.version import __version__
from evalharness.records.identity import digest
from evalharness.records.store import RecordFolder
from evalharness.records.stored import SCHEMA


def make_manifest(identity: Mapping[str, Any], name: str, **start: Any) -> dict[str, Any]:
    """Make the manifest for a first start with the facts `start`; later starts need an equal `identity`."""
    return {
        "schema": SCHEMA,
        "digest": digest(identity),
        "identity": dict(identity),
        "model_name": name,
        "sessions": [
            {
                "started": time.time(),
                "evalharness": __version__,
                "python": platform.python_version(),
                **start,
            }
        ],
    }


class AnswerFolder(RecordFolder):
    """`append_line` stores an answer, `note_failure` a failed try, and `note_start` facts about this start."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._to_begin: Mapping[str, Any] | None = None

    def load_or_refuse(self, manifest: Mapping[str, Any], smaller: Mapping[str, Any] | None = None) -> None:
        super().load_or_refuse(manifest, smaller)
        self._to_begin = manifest

    def note_start(self, **facts: Any) -> None:
        """Add facts to this session's entry in the manifest. The first call also writes the entry."""
        if self._to_begin is not None:
            self.begin({**self._to_begin, "sessions": [{**self._to_begin["sessions"][0], **facts}]})
            self._to_begin = None
            return
        manifest = self.manifest()
        manifest["sessions"][-1] |= facts
        self.write(manifest)

    def note_failure(self, key: str, number: int, error: InfrastructureError, final: bool) -> None:
        self.append_failure({"key": key}, number, error, final)
