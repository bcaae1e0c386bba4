"""The open suite: generated whenever it is asked for, of every seed. The hash of seed 0's is frozen in a test."""

from __future__ import annotations

from envs.alfworld.generator import generate
from envs.base import Task


def open_tasks(suite_seed: int) -> list[Task]:
    """All tasks in order."""
    return list(generate(suite_seed))
