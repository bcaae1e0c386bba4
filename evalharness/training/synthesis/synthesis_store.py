"""The folder of scripts or trajectories: what a model was asked, what came of it. One writer at a time.

| file | what it holds |
|---|---|
| `manifest.json` | what was made: options, readings, sampling, model, hashes of prompts and personas; each start |
| `calls.jsonl` | every answered call a line, synced before the next is asked: nothing that was paid for is lost |
| `passed.jsonl`, `rejected.jsonl` | a finished persona a line, with the signal of every call |
| `errors.jsonl` | infrastructure failures, each try |
| `server.log` | what the model server printed |
| `summary.json` | how many passed at which call, why the others failed, calls, tokens |
| `data.jsonl`, `data.manifest.json` | passed trajectories as training data |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from evalharness.base.errors import UserError
from evalharness.base.reading import open_file, parse_json, read_json, read_object
from evalharness.models.asking import Answer, Refusal
from evalharness.records.answers import AnswerFolder
from evalharness.records.files import ERRORS, MANIFEST
from evalharness.records.lines import located_lines, read_lines
from evalharness.records.stored import Count, Stored, refuse_later
from evalharness.training.synthesis.dialogue import Dialogue
from evalharness.training.synthesis.signals import Signal


class _Finished(Stored):
    """A line of `passed.jsonl` or `rejected.jsonl`. Its script and its turns are checked where they are used."""

    key: str
    index: Count
    persona: str
    calls: Count
    signals: Annotated[list[Annotated[Signal, Field(strict=False)]], Field(min_length=1)]
    mistakes: list[list[str]]
    prompt_tokens: Count
    completion_tokens: Count
    script: dict[str, Any] | None


class _Identity(Stored):
    kind: Literal["scripts", "trajectories"]


class _Start(Stored):
    wanted: Count
    wall_s: float = 0.0
    structured_output: bool | None = None


class _Manifest(Stored):
    digest: str
    identity: _Identity
    model_name: str
    sessions: Annotated[list[_Start], Field(min_length=1)]


CALLS = "calls.jsonl"
PASSED = "passed.jsonl"
REJECTED = "rejected.jsonl"
DATA = "data.jsonl"


AGAIN = "what it held is made anew"


def _finished(raw: bytes) -> dict[str, Any]:
    value = read_object(raw)
    _Finished.of(value)
    return value


def _call(raw: bytes) -> Answer:
    line = read_object(raw)
    refusal = line.get("refusal")
    return Answer(
        str(line["key"]),
        int(line["call"]),
        str(line["reply"]),
        None if refusal is None else _REFUSALS[refusal],
        str(line["finish_reason"]),
        line["prompt_tokens"],
        line["completion_tokens"],
        float(line["latency_s"]),
        int(line["tries"]),
    )


_REFUSALS: dict[str, Refusal] = {"CONTEXT": "context", "REFUSED": "refused"}


@dataclass(frozen=True, order=True)
class FinishedLine:
    """Where a finished persona is kept. Tens of thousands of them do not fit into memory, their positions do."""

    index: int
    key: str
    path: Path
    offset: int

    def read(self) -> dict[str, Any]:
        with open_file(self.path) as file:
            file.seek(self.offset)
            record: dict[str, Any] = parse_json(file.readline())
        return record


def read_finished(folder: Path) -> Iterator[dict[str, Any]]:
    """Every finished persona, one at a time."""
    for name in (PASSED, REJECTED):
        yield from read_lines(folder / name, AGAIN, _finished)


def finished_lines(path: Path) -> list[FinishedLine]:
    """Those of `passed.jsonl` or `rejected.jsonl` in the order of the draw, however they finished."""
    return sorted(
        FinishedLine(record["index"], record["key"], path, offset)
        for _, offset, record in located_lines(path, AGAIN, _finished)
    )


def finished(folder: Path) -> tuple[list[FinishedLine], list[FinishedLine]]:
    """(passed, rejected), each in the order of the draw."""
    return finished_lines(folder / PASSED), finished_lines(folder / REJECTED)


def read_synthesis_manifest(folder: Path) -> dict[str, Any]:
    """Raises UserError when `folder` holds neither scripts nor trajectories."""
    path = folder / MANIFEST
    try:
        manifest = read_json(path)
        refuse_later(path, manifest)
        _Manifest.of(manifest)
    except OSError as error:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise UserError(f"{path} is not readable: {error.strerror}") from None
        why = (
            f"{folder} holds no scripts and no trajectories: it has no {MANIFEST}"
            if folder.exists()
            else f"there is no {folder}"
        )
        make = "make some with: evalharness refine scripts --model MODEL -n 10 -o DIR"
        raise UserError(f"{why} ({make})") from None
    except ValueError as error:
        raise UserError(f"{path} is of neither scripts nor trajectories: {error}") from None
    return dict(manifest)


class SynthesisStore(AnswerFolder):
    """After `resume`, `done` says which personas are finished and `calls` what was answered of the others."""

    lines = (CALLS, PASSED, REJECTED, ERRORS)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.done: set[str] = set()
        self.calls: dict[str, list[Answer]] = {}

    def load(self) -> None:
        self.done = {line.key for lines in finished(self.folder) for line in lines}
        calls: dict[str, dict[int, Answer]] = {}
        for call in read_lines(self.folder / CALLS, AGAIN, _call):
            if call.key not in self.done:
                calls.setdefault(call.key, {}).setdefault(call.number, call)
        self.calls = {key: [found[number] for number in sorted(found)] for key, found in calls.items()}

    def add_call(self, call: Answer) -> None:
        refusal = call.refusal and call.refusal.upper()
        self.append_line(CALLS, {"key": call.key, "call": call.number, **call.to_json(), "refusal": refusal})

    def add_finished(self, dialogue: Dialogue) -> None:
        if dialogue.key in self.done:
            raise ValueError(f"{dialogue.key} is already stored")
        self.append_line(PASSED if dialogue.passed else REJECTED, dialogue.record())
        self.done.add(dialogue.key)
