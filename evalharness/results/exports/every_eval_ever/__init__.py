"""Every Eval Ever 0.3.0: a JSON document of the run's results, and JSON lines of its samples beside it.

Both lie where the format's datastore keeps them: `data/evalharness-SUITE/DEVELOPER/MODEL/UUID.json` and
`UUID_samples.jsonl`. A sample belongs to one result there, so each episode has a line for success and one for progress.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from evalharness.records.episode import Episode
from evalharness.records.manifest import Manifest
from evalharness.records.summary import Summary
from evalharness.results.exports.every_eval_ever.document import document
from evalharness.results.exports.every_eval_ever.ids import About, Ids
from evalharness.results.exports.every_eval_ever.samples import samples

__all__ = ["About", "write"]


def write(
    target: Path,
    episodes: Iterable[Episode],
    manifest: Manifest,
    summary: Summary,
    about: About,
) -> int:
    """Write both files below `target`; returns the number of episodes. One episode is in memory at a time."""
    ended = max((session.started for session in manifest.sessions), default=0.0) + float(summary.wall_s or 0)
    ids = Ids.of(manifest, about, ended)
    path = target / ids.samples
    path.parent.mkdir(parents=True, exist_ok=True)
    count, rows = 0, 0
    checksum = hashlib.sha256()
    with path.open("wb") as file:
        for episode in episodes:
            count += 1
            for row in samples(episode, manifest, ids):
                line = json.dumps(row, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
                checksum.update(line)
                file.write(line)
                rows += 1
    whole = document(manifest, summary, ids, ended) | {
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": ids.samples,
            "hash_algorithm": "sha256",
            "checksum": checksum.hexdigest(),
            "total_rows": rows,
        }
    }
    (target / ids.folder / f"{ids.uuid}.json").write_text(
        json.dumps(whole, indent=2) + "\n", encoding="utf-8"
    )
    return count
