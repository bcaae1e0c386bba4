"""What a long making of data has done so far, a line a task; a line torn by a kill is made again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalharness.base.errors import system_errors
from evalharness.base.locks import held
from evalharness.base.reading import read_object
from evalharness.records.lines import LineFile, read_lines


class Journal:
    """Results by key, kept beside the file that is being made, by `fingerprint` of what is made.

    For one writer: it is locked for as long as it is open. Raises UserError where another process has it, where it is
    damaged, and where it cannot be written; `add` raises StoreError when the disk refuses.
    """

    def __init__(self, path: Path, fingerprint: Mapping[str, Any]) -> None:
        self.path = path
        self.done: dict[str, Any] = {}
        self._lines = LineFile(path)
        head = {"making": json.loads(json.dumps(dict(fingerprint)))}
        other = f"another evalharness is making this file (it holds {path}); wait for it, or give another -o"
        with system_errors(f"cannot write {path}", "; choose another -o"):
            self._file = held(path, other)
            self._lines.drop_torn_line()
        lines = read_lines(path, "what it held is made anew", _line)
        if next(lines, None) == head:
            self.done = {line["key"]: line["result"] for line in lines}
        else:
            self._file.truncate(0)
            self._lines.append(head)

    def add(self, key: str, result: Any) -> None:
        self.done[key] = result
        self._lines.append({"key": key, "result": result})

    def close(self) -> None:
        self._lines.close()
        self._file.close()

    def remove(self) -> None:
        """Removed while it is locked, so that nobody continues what is finished."""
        self.path.unlink(missing_ok=True)
        self.close()


def _line(raw: bytes) -> dict[str, Any]:
    line = read_object(raw)
    if "making" not in line and not {"key", "result"} <= line.keys():
        raise ValueError("neither what is made nor a result")
    return line
