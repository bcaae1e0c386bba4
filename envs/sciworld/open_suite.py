"""The open suite: of suite seed 0 as it is frozen in `open_suite.json`, of another as the generator makes it.

`python -m evalharness.envs.sciworld.open_suite` makes that file anew (seven minutes of CPU time).
"""

from __future__ import annotations

import sys

from evalharness.envs.base import Task
from evalharness.envs.frozen import FROZEN_SEED
from evalharness.envs.sciworld.generator import FROZEN, OpenCase, generate_cases


def open_tasks(suite_seed: int) -> list[Task]:
    """All tasks in order; for another seed than 0 that takes minutes."""
    cases = FROZEN.cases() if suite_seed == FROZEN_SEED else generate_cases(suite_seed)
    return [case.to_task(index) for index, case in enumerate(cases)]


def _freeze() -> None:
    cases: list[OpenCase] = []
    for case in generate_cases(FROZEN_SEED):
        cases.append(case)
        print(len(cases), case.task, case.variation, f"{len(case.plan)} turns", file=sys.stderr, flush=True)
    FROZEN.write(cases)


if __name__ == "__main__":
    _freeze()
