"""Read and write the folder of scripts or trajectories. One process writes at a time.

| file | content | |---|---| | `manifest.json` | options, sampling, model, hashes of prompts and personas, and facts
about each session | | `calls.jsonl` | a line for each answered call, synced before the next call, so that no paid reply
is lost | | `passed.jsonl`, `rejected.jsonl` | a line for each finished persona, with the signal of every call | |
`errors.jsonl` | a line for each infrastructure failure | | `server.log` | output of the model server | | `summary.json`
| number of passed personas by call, reasons of rejections, calls, tokens | | `data.jsonl`, `data.manifest.json` |
passed trajectories as training data |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from evalharness.base.errors import UserError
from evalharness.base.reading import open_file, parse_json, read_json, read_object
from evalharness.models.many_requests import Answer, Refusal
from evalharness.records.answers import AnswerFolder
from evalharness.records.files import ERRORS, MANIFEST
from evalharness.records.lines import locate_lines, read_lines
from evalharness.records.stored import Count, Stored, refuse_later
from evalharness.training.synthesis.dialogue import Dialogue
from evalharness.training.synthesis.signals import Signal


class _Finished(Stored):
    """A line of `passed.jsonl` or `rejected.jsonl`. The script and the turns in the line are validated later, on
    use."""

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


class _Session(Stored):
    wanted: Count
    wall_s: float = 0.0
    structured_output: bool | None = None


class _Manifest(Stored):
    digest: str
    identity: _Identity
    model_name: str
    sessions: Annotated[list[_Session], Field(min_length=1)]


CALLS = "calls.jsonl"
PASSED = "passed.jsonl"
REJECTED = "rejected.jsonl"
DATA = "data.jsonl"


AGAIN = "its content is made again"


def _parse_finished(raw: bytes) -> dict[str, Any]:
    value = read_object(raw)
    _Finished.of(value)
    return value


def _parse_call(raw: bytes) -> Answer:
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
    """The position of a finished persona's line in a file. Only positions are kept in memory, because tens of thousands
    of personas with scripts would not fit."""

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
    for name in (PASSED, REJECTED):
        yield from read_lines(folder / name, AGAIN, _parse_finished)


def list_finished(path: Path) -> list[FinishedLine]:
    """Return the lines of `passed.jsonl` or `rejected.jsonl` in the order in which the personas were drawn."""
    return sorted(
        FinishedLine(record["index"], record["key"], path, offset)
        for _, offset, record in locate_lines(path, AGAIN, _parse_finished)
    )


def list_all_finished(folder: Path) -> tuple[list[FinishedLine], list[FinishedLine]]:
    """Return the passed and the rejected personas, each list in the order in which the personas were drawn."""
    return list_finished(folder / PASSED), list_finished(folder / REJECTED)


def read_synthesis_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest. Raises UserError if `folder` has neither scripts nor trajectories."""
    path = folder / MANIFEST
    try:
        manifest = read_json(path)
        refuse_later(path, manifest)
        _Manifest.of(manifest)
    except OSError as error:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise UserError(f"{path} is not readable: {error.strerror}") from None
        why = (
            f"{folder} has neither scripts nor trajectories: it has no {MANIFEST}"
            if folder.exists()
            else f"there is no {folder}"
        )
        make = "make some with: evalharness refine scripts --model MODEL -n 10 -o DIR"
        raise UserError(f"{why} ({make})") from None
    except ValueError as error:
        raise UserError(f"{path} is no manifest of scripts or trajectories: {error}") from None
    return dict(manifest)


class SynthesisStore(AnswerFolder):
    """Writes the folder. After `resume`, `done` has the keys of finished personas, and `calls` has the stored calls of
    all other personas."""

    lines = (CALLS, PASSED, REJECTED, ERRORS)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.done: set[str] = set()
        self.calls: dict[str, list[Answer]] = {}

    def load(self) -> None:
        self.done = {line.key for lines in list_all_finished(self.folder) for line in lines}
        calls: dict[str, dict[int, Answer]] = {}
        for call in read_lines(self.folder / CALLS, AGAIN, _parse_call):
            if call.key not in self.done:
                calls.setdefault(call.key, {}).setdefault(call.number, call)
        self.calls = {key: [call for _, call in sorted(answers.items())] for key, answers in calls.items()}

    def add_call(self, call: Answer) -> None:
        refusal = call.refusal and call.refusal.upper()
        self.append_line(CALLS, {"key": call.key, "call": call.number, **call.to_json(), "refusal": refusal})

    def add_finished(self, dialogue: Dialogue) -> None:
        if dialogue.key in self.done:
            raise ValueError(f"{dialogue.key} is already stored")
        self.append_line(PASSED if dialogue.passed else REJECTED, dialogue.record())
        self.done.add(dialogue.key)
