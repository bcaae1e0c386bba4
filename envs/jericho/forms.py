"""Compute the digest of a quest from its goal, subgoals and plan."""

from __future__ import annotations

from evalharness.envs.base import Task, digest


def forms(task: Task) -> list[str]:
    return [digest("\n".join([task.goal, *task.subgoals, "", *map(str, task.payload.get("plan", ()))]))]
