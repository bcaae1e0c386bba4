"""How far a study is: a table of its cells, live on a terminal; what failed; how long the rest will take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from rich.console import Console, Group, RenderableType
from rich.table import Table

from evalharness.base.terminal import plain_table
from evalharness.base.text import duration
from evalharness.base.watching import dim, watching
from evalharness.training.study.jobs import Status, StudyProgress, log_of
from evalharness.training.study.plan import Cell, Kind

PLURALS: dict[Kind, str] = {"data": "data sets", "training": "trainings", "probe": "probes", "run": "runs"}
_PROBLEMS: tuple[Status, ...] = ("failed", "blocked")


def table_of(progress: StudyProgress) -> Table:
    """A row a cell: its data, its training, and its probe and its runs where there are any."""
    cells = progress.plan.cells
    asked, played = any(cell.probe for cell in cells), any(cell.runs for cell in cells)
    columns = ("cell", "data", "training", *(["probe"] if asked else []), *(["runs"] if played else []))
    table = plain_table(*columns, gap=2)
    for cell in cells:
        training = cell.before[len(cell.data) :]
        probe = [_one(progress, (cell.probe,) if cell.probe else ())] if asked else []
        runs = [_runs(progress, cell)] if played else []
        table.add_row(cell.name, _one(progress, cell.data), _one(progress, training), *probe, *runs)
    return table


def _one(progress: StudyProgress, names: tuple[str, ...]) -> str:
    """The last of several jobs that is not waiting says it, and a failed one before all."""
    if not names:
        return "-"
    found = [progress.states[name].status for name in names]
    for status in ("failed", "blocked", "running"):
        if status in found:
            return status
    return "done" if all(status == "done" for status in found) else "waiting"


def _runs(progress: StudyProgress, cell: Cell) -> str:
    if len(cell.runs) == 1:
        return _one(progress, cell.runs)
    found = [progress.states[name].status for name in cell.runs]
    others = [f"{found.count(s)} {s}" for s in ("running", "failed", "blocked") if s in found]
    return ", ".join([f"{found.count('done')}/{len(found)} done", *others])


def seconds_left(progress: StudyProgress, slots: int) -> float | None:
    """None before a job of every kind that is left was finished."""
    total = 0.0
    for kind in get_args(Kind):
        left = progress.count("waiting", kind) + progress.count("running", kind)
        if left and (each := progress.seconds_of(kind)) is None:
            return None
        total += left * (each or 0.0) if left else 0.0
    return total / slots


def counts(progress: StudyProgress, slots: int) -> str:
    """`data sets 1/1 · trainings 2/8 · runs 1/8 · about 12 min left`."""
    parts = [
        f"{plural} {progress.count('done', kind)}/{len(progress.of(kind))}"
        for kind, plural in PLURALS.items()
        if progress.of(kind)
    ]
    parts += [f"{n} {status}" for status in _PROBLEMS if (n := progress.count(status))]
    left = seconds_left(progress, slots)
    return " · ".join([*parts, *([f"about {duration(left)} left"] if left else [])])


def running(progress: StudyProgress) -> str:
    return ", ".join(name for name, state in progress.states.items() if state.status == "running")


@contextmanager
def watch_study(progress: StudyProgress, slots: int, console: Console) -> Iterator[None]:
    """Show the cells until the context closes."""
    said = ""

    def view() -> RenderableType:
        return Group(table_of(progress), dim(counts(progress, slots)), dim(running(progress)))

    def line() -> str:
        """Only what is new: a training takes hours."""
        nonlocal said
        before, said = said, counts(progress, slots)
        return said if said != before else ""

    with watching(console, view, status=lambda: running(progress), line=line):
        yield


def problems(progress: StudyProgress, folder: Path) -> list[str]:
    """A line a job that failed, with its log; one for those that waited for it."""
    lines = [
        f"{job.name} failed: {state.why} ({log_of(job, folder)})"
        for job in progress.plan.jobs.values()
        if (state := progress.states[job.name]).status == "failed"
    ]
    if blocked := [name for name, state in progress.states.items() if state.status == "blocked"]:
        lines.append(f"not done, because what they need failed: {', '.join(blocked)}")
    return lines


def to_json(progress: StudyProgress) -> dict[str, Any]:
    return {
        "cells": [asdict(cell) for cell in progress.plan.cells],
        "jobs": {
            job.name: {
                "kind": job.kind,
                "status": (state := progress.states[job.name]).status,
                "seconds": state.seconds,
                "why": state.why or None,
                "command": ["evalharness", *job.words],
            }
            for job in progress.plan.jobs.values()
        },
    }
