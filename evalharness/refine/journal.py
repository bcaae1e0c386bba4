"""What a long making of data has done so far, a line a task; a line torn by a kill is made again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from evalharness.errors import UserError
from evalharness.refine.sample import SampleError, parse_json


class Journal:
    """Results by key, kept beside the file that is being made. For one writer, by `fingerprint` of what is made."""

    def __init__(self, path: Path, fingerprint: Mapping[str, Any]) -> None:
        self.path = path
        self.done: dict[str, Any] = {}
        head = {"making": json.loads(json.dumps(dict(fingerprint)))}
        lines, whole = self._read()
        if lines and lines[0] == head:
            self.done = {line["key"]: line["result"] for line in lines[1:] if "key" in line}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if self.done:
                with path.open("r+b") as file:
                    file.truncate(whole)
                self._file: IO[str] = path.open("a", encoding="ascii")
            else:
                self._file = path.open("w", encoding="ascii")
                self._file.write(json.dumps(head) + "\n")
                self._file.flush()
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None

    def _read(self) -> tuple[list[dict[str, Any]], int]:
        """The whole lines from the start, and how many bytes they have."""
        lines: list[dict[str, Any]] = []
        whole = 0
        try:
            raw = self.path.read_bytes()
        except OSError:
            return [], 0
        for line in raw.splitlines(keepends=True):
            try:
                data = parse_json(line)
            except SampleError:
                break
            if not line.endswith(b"\n") or not isinstance(data, dict):
                break
            lines.append(data)
            whole += len(line)
        return lines, whole

    def add(self, key: str, result: Any) -> None:
        self.done[key] = result
        self._file.write(json.dumps({"key": key, "result": result}, separators=(",", ":")) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def remove(self) -> None:
        self.close()
        self.path.unlink(missing_ok=True)
