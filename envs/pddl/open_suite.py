"""The open suite: of suite seed 0 rebuilt without planning from the drafts noted in `open_suite.json`.

`python -m evalharness.envs.pddl.open_suite` makes that file anew (some seconds).
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from evalharness.envs.base import Task
from evalharness.envs.frozen import FROZEN_SEED, write_table
from evalharness.envs.pddl.engine import GroundedProblem
from evalharness.envs.pddl.generator import Candidate, choices_of, frozen, generate, shortest_plan
from evalharness.envs.pddl.syntax import parse_domain, parse_problem

FROZEN = Path(__file__).with_name("open_suite.json")


def open_tasks(suite_seed: int) -> list[Task]:
    """All tasks in order; for another seed than 0 that takes some seconds of planning the first time in a process."""
    if suite_seed != FROZEN_SEED:
        return list(_generated(suite_seed))
    return [
        Candidate(suite_seed, row["kind"], row["number"], row["draft"]).task(index, row["choices"])
        for index, row in enumerate(frozen()["tasks"])
    ]


@lru_cache(maxsize=4)
def _generated(suite_seed: int) -> tuple[Task, ...]:
    return tuple(generate(suite_seed))


def table_row(task: Task) -> dict[str, Any]:
    domain = parse_domain(task.payload["domain"])
    world = GroundedProblem(domain, parse_problem(task.payload["problem"], domain))
    plan = shortest_plan(world, task.kind)
    if plan is None:
        raise RuntimeError(f"{task.id} has no plan")
    return {
        "kind": task.kind,
        "number": task.payload["number"],
        "draft": task.payload["draft"],
        "template": task.payload["template"],
        "difficulty": task.difficulty,
        "plan_length": len(plan.actions),
        "choices": choices_of(world, plan.actions),
        "plan_sha256": hashlib.sha256("\n".join(map(str, plan.actions)).encode()).hexdigest(),
        "content_sha256": task.content_hash,
    }


if __name__ == "__main__":
    write_table(FROZEN, {"suite_seed": FROZEN_SEED}, "tasks", map(table_row, generate(FROZEN_SEED)))
