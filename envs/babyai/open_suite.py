"""The open suite: of suite seed 0 as it is frozen in `open_suite.json`, of another as the generator makes it.

`python -m evalharness.envs.babyai.open_suite` makes that file anew (minutes).
"""

from __future__ import annotations

import sys
from functools import cache

from evalharness.envs.babyai.generator import FROZEN, OpenCase, generate_cases
from evalharness.envs.base import Task
from evalharness.envs.frozen import FROZEN_SEED


def open_tasks(suite_seed: int) -> list[Task]:
    """All tasks in order; for another seed than 0 that takes minutes the first time in a process."""
    return [case.to_task(index) for index, case in enumerate(_cases(suite_seed))]


@cache
def _cases(suite_seed: int) -> tuple[OpenCase, ...]:
    return FROZEN.cases() if suite_seed == FROZEN_SEED else tuple(generate_cases(suite_seed))


def _freeze() -> None:
    cases = []
    for case in generate_cases(FROZEN_SEED):
        cases.append(case)
        print(case.level, case.seed, case.plan_turns, file=sys.stderr)
    FROZEN.write(cases)


if __name__ == "__main__":
    _freeze()
