"""Plans: an open task carries its own, a published game's was written with our labels of it."""

from __future__ import annotations

from evalharness.envs.base import Task
from evalharness.envs.jericho.labels import game_labels


def plan(task: Task) -> list[str]:
    return list(task.payload["plan"] if "plan" in task.payload else game_labels()[task.payload["game"]].plan)
