"""Compute a digest that identifies a task by its goal, subgoals and plan; equal tasks have equal digests."""

from __future__ import annotations

from evalharness.envs.base import Task, digest


def forms(task: Task) -> list[str]:
    return [digest("\n".join([task.goal, *task.subgoals, "", *map(str, task.payload.get("plan", ()))]))]
