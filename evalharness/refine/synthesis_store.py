"""The folder of scripts or trajectories: what a model was asked, what came of it. One writer at a time.

| file | what it holds |
|---|---|
| `manifest.json` | what was made: options, readings, sampling, model, hashes of prompts and personas; each session |
| `calls.jsonl` | every answered call a line, synced before the next is asked: nothing that was paid for is lost |
| `passed.jsonl`, `rejected.jsonl` | a finished persona a line, with the signal of every call |
| `errors.jsonl` | infrastructure failures, each try |
| `server.log` | what the model server printed |
| `summary.json` | how many passed at which call, why the others failed, calls, tokens |
| `data.jsonl`, `data.manifest.json` | passed trajectories as training data |
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalharness.errors import InfrastructureError, UserError
from evalharness.records.store import MANIFEST, RecordFolder, write_atomically
from evalharness.refine.conversation import Call, Conversation
from evalharness.refine.sample import SampleError, parse_json

CALLS = "calls.jsonl"
PASSED = "passed.jsonl"
REJECTED = "rejected.jsonl"
ERRORS = "errors.jsonl"
DATA = "data.jsonl"


def _whole_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(offset, object) of every line. A torn last line, where writing was cut off, is skipped.

    Raises UserError for any other line that is no object: that is damage, not an interruption.
    """
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        offset = 0
        for number, line in enumerate(file, 1):
            try:
                value = parse_json(line)
                if not isinstance(value, dict):
                    raise SampleError("no object")
            except SampleError as error:
                if not line.endswith(b"\n"):
                    return
                raise UserError(
                    f"{path} is damaged at line {number} ({error}); restore it, or delete that line and run the same "
                    "command again: what it held is made anew"
                ) from None
            yield offset, value
            offset += len(line)


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole line, one at a time."""
    return (value for _, value in _whole_lines(path))


@dataclass(frozen=True, order=True)
class FinishedLine:
    """Where a finished persona is kept. Tens of thousands of them do not fit into memory, their positions do."""

    index: int
    key: str
    path: Path
    offset: int

    def read(self) -> dict[str, Any]:
        with self.path.open("rb") as file:
            file.seek(self.offset)
            record: dict[str, Any] = parse_json(file.readline())
        return record


def finished_lines(path: Path) -> list[FinishedLine]:
    """Those of `passed.jsonl` or `rejected.jsonl` in the order of the draw, however they finished."""
    found = []
    for offset, record in _whole_lines(path):
        if not isinstance(record.get("key"), str) or not isinstance(record.get("index"), int):
            raise UserError(f"{path} is damaged: a line has no key or no index; restore it")
        found.append(FinishedLine(record["index"], record["key"], path, offset))
    return sorted(found)


def finished(folder: Path) -> tuple[list[FinishedLine], list[FinishedLine]]:
    """(passed, rejected), each in the order of the draw."""
    return finished_lines(folder / PASSED), finished_lines(folder / REJECTED)


def read_synthesis_manifest(folder: Path) -> dict[str, Any]:
    """Raises UserError when `folder` holds neither scripts nor trajectories."""
    path = folder / MANIFEST
    try:
        manifest = parse_json(path.read_bytes())
        kind = manifest["identity"]["kind"]
        if kind not in ("scripts", "trajectories") or not isinstance(manifest["digest"], str):
            raise SampleError("of another kind")
    except OSError:
        raise UserError(
            f"{folder} holds no scripts and no trajectories: it has no {MANIFEST} "
            "(make some with: evalharness refine scripts --model MODEL -n 10 -o DIR)"
        ) from None
    except (SampleError, KeyError, TypeError) as error:
        raise UserError(f"{path} is of neither scripts nor trajectories: {error}") from None
    return dict(manifest)


class SynthesisStore(RecordFolder):
    """The one writer. After `resume`, `done` says which personas are finished and `calls` what was answered of the
    others."""

    lines = (CALLS, PASSED, REJECTED, ERRORS)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.done: set[str] = set()
        self.calls: dict[str, list[Call]] = {}

    def load(self) -> None:
        self.done = {line.key for lines in finished(self.folder) for line in lines}
        calls: dict[str, dict[int, Call]] = {}
        for line in read_records(self.folder / CALLS):
            try:
                call = Call.from_json(line)
            except (KeyError, TypeError, ValueError) as error:
                raise UserError(f"{self.folder / CALLS} holds a line that is no call: {error}") from None
            if call.key not in self.done:
                calls.setdefault(call.key, {}).setdefault(call.number, call)
        self.calls = {key: [found[number] for number in sorted(found)] for key, found in calls.items()}

    def add_call(self, call: Call) -> None:
        self.append_line(CALLS, call.to_json())

    def add_finished(self, conversation: Conversation) -> None:
        if conversation.key in self.done:
            raise ValueError(f"{conversation.key} is already stored")
        self.append_line(PASSED if conversation.passed else REJECTED, conversation.record())
        self.done.add(conversation.key)

    def add_error(self, key: str, attempt: int, error: InfrastructureError, final: bool) -> None:
        self.append_line(
            ERRORS,
            {
                "time": time.time(),
                "key": key,
                "attempt": attempt,
                "kind": type(error).__name__,
                "error": str(error),
                "final": final,
                **error.details(),
            },
        )

    def note_session(self, **facts: Any) -> None:
        """Add to what the manifest says of this session."""
        manifest = self.manifest()
        manifest["sessions"][-1] |= facts
        write_atomically(self.folder / MANIFEST, json.dumps(manifest, indent=2, sort_keys=True) + "\n")
