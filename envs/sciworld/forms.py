"""Compute digests that identify equal tasks: one of the task without names, and one of its kind and variation."""

from __future__ import annotations

from collections.abc import Iterator

from evalharness.envs.base import Task, digest
from evalharness.envs.sciworld.kinds import EXAMPLE, PUBLISHED
from evalharness.envs.sciworld.open.generator import shape


def forms(task: Task) -> list[str]:
    return [digest(shape(task)), _variation(str(task.payload["task"]), int(task.payload["variation"]))]


def published_forms() -> Iterator[str]:
    for task, variations in PUBLISHED.items():
        yield from (_variation(task, variation) for variation in variations)
    yield from (_variation(task, variation) for task, variation in EXAMPLE)


def _variation(task: str, variation: int) -> str:
    return digest(f"{task}/{variation}")
