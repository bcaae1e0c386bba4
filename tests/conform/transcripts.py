"""Recorded transcripts: one JSON object a line with `task`, `id`, `goal`, `init_obs`, `steps` and `success`.

Each step has `action`, `obs`, `progress`, `done` and `valid`. Everything but `task`, `id`, `steps` and a step's
`action` may be absent or null, and then is not compared; fields we do not know are kept, for rules to refer to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from evalharness.base.errors import UserError
from evalharness.base.reading import parse_json, read_text
from evalharness.records.stored import why


@dataclass(frozen=True)
class Step:
    action: str
    observation: str | None
    progress: float | None
    done: bool | None
    valid: bool | None
    fields: Mapping[str, Any]
    """Everything recorded of this step."""


@dataclass(frozen=True)
class Transcript:
    family: str
    """As the recording calls it; a family may have another name here (see `Tolerance.recorded_as`)."""
    index: int
    script: str
    goal: str | None
    initial_observation: str | None
    success: bool | None
    steps: tuple[Step, ...]
    fields: Mapping[str, Any]
    """Everything recorded but the steps."""
    source: str
    """`file.jsonl:12`"""

    @property
    def labelled(self) -> bool:
        """Whether the recording knew labels; without, its progress is null and it ended with the world alone."""
        noted = [step.fields["progress"] for step in self.steps if "progress" in step.fields]
        return not noted or any(progress is not None for progress in noted)


def list_recorded_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """(line number, what the line holds). Raises UserError."""
    try:
        lines = read_text(path).split("\n")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not a transcript file: it is not UTF-8 text ({error.reason})") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield number, parse_json(line)
            except ValueError as error:
                raise UserError(
                    f"{path}:{number} is not JSON ({error}); transcripts are one JSON object a line"
                ) from error


def read_transcripts(path: Path) -> list[Transcript]:
    """All transcripts of a file; [] when it holds another kind of record about tasks. Raises UserError."""
    rows = []
    for number, row in list_recorded_rows(path):
        if not isinstance(row, dict) or "task" not in row or "id" not in row:
            raise UserError(f"{path}:{number} is no transcript: it needs at least task, id and steps")
        rows.append((number, row))
    if not rows:
        raise UserError(f"{path} is empty")
    if not any("steps" in row for _, row in rows):
        return []
    return [_transcript(row, f"{path.name}:{number}", f"{path}:{number}") for number, row in rows]


class _RecordedStep(BaseModel):
    model_config = ConfigDict(strict=True)
    action: str
    obs: str | None = None
    progress: float | None = None
    done: bool | None = None
    valid: bool | None = None


class _Recorded(BaseModel):
    model_config = ConfigDict(strict=True)
    task: str
    id: int
    script: str = ""
    goal: str | None = None
    init_obs: str | None = None
    success: bool | None = None
    steps: list[_RecordedStep]


def _transcript(row: dict[str, Any], source: str, where: str) -> Transcript:
    try:
        read = _Recorded.model_validate(row)
    except ValidationError as error:
        raise UserError(f"{where} is no transcript: {why(error)}") from None
    steps = tuple(
        Step(step.action, step.obs, step.progress, step.done, step.valid, fields)
        for step, fields in zip(read.steps, row["steps"], strict=True)
    )
    fields = {name: value for name, value in row.items() if name != "steps"}
    return Transcript(
        read.task, read.id, read.script, read.goal, read.init_obs, read.success, steps, fields, source
    )
