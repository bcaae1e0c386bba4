"""The oracle's plan for a task, made once a session: planning all of BabyAI's takes most of a minute."""

from __future__ import annotations

from evalharness.envs.base import Task, TextEnv

_plans: dict[str, list[str]] = {}


def oracle_plan(environment: TextEnv, task: Task) -> list[str]:
    """The plan for the task that `environment` has just begun. It is the same whenever asked, as each family tests."""
    key = task.content_hash
    if key not in _plans:
        _plans[key] = environment.oracle()
    return list(_plans[key])
