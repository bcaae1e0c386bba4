"""Floors and ceilings: what chance reaches on a task, and what the best known plan reaches.

Kept a row a task under `results/reference/<suite>.csv`, so that a run over any part of a suite is compared with the
floor and ceiling of just that part. Made by `evalharness audit`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

MAX_TURNS = 30
"""Of the published protocol. Stored floors and ceilings are for it, or for a family's own limit (their `max_turns`)."""


@dataclass(frozen=True)
class TaskReference:
    """One task under the limit of `max_turns`. Rates are fractions 0..1."""

    task_id: str
    task_hash: str
    difficulty: str
    plan_turns: int | None
    """Turns of the shortest known plan that succeeds by the label, however long; None when none is known."""
    ceiling_success: float
    ceiling_progress: float
    """The best that a known plan reaches within the limit."""
    floor_success: float | None
    floor_progress: float | None
    """Means of a uniformly random choice among valid actions over `floor_samples` attempts."""
    floor_samples: int
    label_agrees: bool
    """No reference plan ends with label and simulator of two minds."""
    why: str
    """Where they differ: which plan, which subgoals (numbers from 0) were never completed."""
    labels: str = ""
    """Who wrote the task's labels, as `Task.labels`; empty where it was not noted."""
    max_turns: int = MAX_TURNS
    """Floor and ceiling hold for this turn limit only."""


def reference_folder() -> Path:
    """Inside the installed package, or beside it in a source checkout."""
    installed = Path(str(files("evalharness"))) / "_reference"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "results" / "reference"


def _optional(text: str) -> float | None:
    return float(text) if text else None


@cache
def load_reference(suite: str, suite_seed: int = 0) -> Mapping[str, TaskReference]:
    """Task id -> its reference; empty where none is stored (an open suite of another seed)."""
    path = reference_folder() / f"{suite}.csv"
    if not path.exists() or (suite == "open" and suite_seed != 0):
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {
            row["task_id"]: TaskReference(
                task_id=row["task_id"],
                task_hash=row["task_hash"],
                difficulty=row["difficulty"],
                plan_turns=int(row["plan_turns"]) if row["plan_turns"] else None,
                ceiling_success=float(row["ceiling_success"]),
                ceiling_progress=float(row["ceiling_progress"]),
                floor_success=_optional(row["floor_success"]),
                floor_progress=_optional(row["floor_progress"]),
                floor_samples=int(row["floor_samples"]),
                label_agrees=row["label_agrees"] == "true",
                why=row["why"],
                labels=row.get("labels", ""),
                max_turns=int(row.get("max_turns") or MAX_TURNS),
            )
            for row in csv.DictReader(file)
        }


def write_reference(path: Path, rows: Iterable[TaskReference]) -> None:
    """As CSV, sorted by task; rates with six decimals so that the file is the same on every machine."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(TaskReference)])
        for row in sorted(rows, key=lambda row: row.task_id):
            writer.writerow([_cell(value) for value in asdict(row).values()])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def chance_corrected(score: float, floor: float, ceiling: float) -> float | None:
    """(score - floor) / (ceiling - floor): 0 is what chance gives, 1 what the best known plans give.

    None where there is no room between the two.
    """
    return (score - floor) / (ceiling - floor) if ceiling > floor else None


def family_reference(
    task_hashes: Sequence[tuple[str, str]],
    reference: Mapping[str, TaskReference],
    rates: Mapping[str, float],
    max_turns: int = MAX_TURNS,
) -> dict[str, Any] | None:
    """Floor, ceiling and chance-corrected rates over the tasks played (id and content hash of each).

    None unless every one of them has a reference of the same content and turn limit.
    """
    rows = [reference.get(task_id) for task_id, _ in task_hashes]
    known = [
        row
        for row, (_, sha) in zip(rows, task_hashes, strict=True)
        if row is not None and row.task_hash == sha and row.max_turns == max_turns
    ]
    return corrected_rates(known, rates) if known and len(known) == len(rows) else None


def corrected_rates(known: Sequence[TaskReference], rates: Mapping[str, float | None]) -> dict[str, Any]:
    """Mean floor and ceiling of the tasks, and the chance-corrected rates; None for a rate that is not known."""
    result: dict[str, Any] = {"floor": {}, "ceiling": {}, "chance_corrected": {}}
    for rate, name in (("success_rate", "success"), ("progress_rate", "progress")):
        ceiling = sum(getattr(row, f"ceiling_{name}") for row in known) / len(known)
        floors = [getattr(row, f"floor_{name}") for row in known]
        floor = None if None in floors else sum(floors) / len(floors)
        result["ceiling"][rate] = ceiling
        result["floor"][rate] = floor
        result["chance_corrected"][rate] = (
            None
            if floor is None or (score := rates[rate]) is None
            else chance_corrected(score, floor, ceiling)
        )
    return result
