"""What a long making of data has done so far, a line a task; a line torn by a kill is made again."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from evalharness.errors import UserError
from evalharness.refine.sample import SampleError, parse_json


class Journal:
    """Results by key, kept beside the file that is being made, by `fingerprint` of what is made.

    For one writer: it is locked for as long as it is open. Raises UserError where another process has it, and where
    it cannot be written.
    """

    def __init__(self, path: Path, fingerprint: Mapping[str, Any]) -> None:
        self.path = path
        self.done: dict[str, Any] = {}
        head = {"making": json.loads(json.dumps(dict(fingerprint)))}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._locked()
            lines, whole = self._read()
            if lines and lines[0] == head:
                self.done = {line["key"]: line["result"] for line in lines[1:]}
            self._file.truncate(whole if self.done else 0)
        except OSError as error:
            raise self._unwritable(error) from None
        if not self.done:
            self._append(head)

    def _locked(self) -> IO[bytes]:
        while True:
            file = self.path.open("ab")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Whoever had it may have finished, and removed it, before the lock was ours.
                if self.path.exists() and os.path.samestat(os.fstat(file.fileno()), self.path.stat()):
                    return file
            except BlockingIOError:
                file.close()
                raise UserError(
                    f"another evalharness is making this file (it holds {self.path}); wait for it, or give another -o"
                ) from None
            file.close()

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(
            f"cannot write {self.path}: {error.strerror}; what is whole in it stays, the same command continues"
        )

    def _read(self) -> tuple[list[dict[str, Any]], int]:
        """The whole lines from the start, and how many bytes they have."""
        lines: list[dict[str, Any]] = []
        whole = 0
        for line in self.path.read_bytes().splitlines(keepends=True):
            try:
                data = parse_json(line)
            except SampleError:
                break
            if not line.endswith(b"\n") or not isinstance(data, dict):
                break
            if lines and not {"key", "result"} <= data.keys():
                break
            lines.append(data)
            whole += len(line)
        return lines, whole

    def _append(self, value: Mapping[str, Any]) -> None:
        try:
            self._file.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise self._unwritable(error) from None

    def add(self, key: str, result: Any) -> None:
        self.done[key] = result
        self._append({"key": key, "result": result})

    def close(self) -> None:
        # What a full disk left in the buffer is torn either way.
        with contextlib.suppress(OSError):
            self._file.close()

    def remove(self) -> None:
        """Removed while it is locked, so that nobody continues what is finished."""
        self.path.unlink(missing_ok=True)
        self.close()
