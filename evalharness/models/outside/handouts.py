"""Which episodes were given to an agent. It outlives the run: a task that was seen before a crash is known as seen."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from evalharness.base.reading import read_object
from evalharness.records.lines import LineFile, read_lines

FILE = "handouts.jsonl"
"""One line each time that an episode was given to an agent."""


class HandOuts:
    def __init__(self, folder: Path) -> None:
        """Raises UserError for a damaged file."""
        self._file = LineFile(folder / FILE)
        self._file.drop_torn_line()
        lines = read_lines(folder / FILE, "the episode counts as not given out", read_object)
        self._counts = Counter((line["task_id"], line["sample"]) for line in lines)

    def note(self, key: tuple[str, int]) -> int:
        """How often this one has been given out now. Raises StoreError."""
        self._counts[key] += 1
        times = self._counts[key]
        self._file.append({"time": time.time(), "task_id": key[0], "sample": key[1], "times": times})
        return times

    def close(self) -> None:
        self._file.close()
