"""The open suite: generated whenever it is asked for, of every seed. The hash of seed 0's is frozen in a test."""

from __future__ import annotations

from evalharness.envs.alfworld.generator import generate
from evalharness.envs.base import Task


def open_tasks(suite_seed: int) -> list[Task]:
    """All tasks in order."""
    return list(generate(suite_seed))
