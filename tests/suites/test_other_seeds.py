"""No open suite of another seed has a task of suite seed 0, or one twice: neither in the letters of what a player reads
first nor up to renaming."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from evalharness.envs import specs
from evalharness.envs.base import Task
from evalharness.envs.sciworld.generator import _of_kind
from evalharness.envs.sciworld.simulator import Simulator
from tests.support.contracts import FAMILIES, contract

SEEDS = (0, 1, 777)
OF_PDDL = (0, 777)
"""Planning a suite of PDDL takes a minute and more."""
FEW_VARIATIONS = ["identify-life-stages-2", "power-component"]
"""ScienceWorld's generator takes seven minutes for a suite; these are two of its kinds with the fewest tasks."""


SLOW = {"babyai": 80, "pddl": 80, "sciworld": 80}


def _suite(family: str, seed: int) -> list[Task]:
    if family != "sciworld":
        return specs()[family].suites.load_tasks("open", None, seed)
    if seed == 0:
        return [
            task for task in specs()[family].suites.load_tasks("open", None, 0) if task.kind in FEW_VARIATIONS
        ]
    simulator = Simulator()
    try:
        cases = [case for kind in FEW_VARIATIONS for case in _of_kind(simulator, kind, seed)]
    finally:
        simulator.close()
    return [case.to_task(index) for index, case in enumerate(cases)]


def _starts(family: str, tasks: Iterable[Task]) -> list[tuple[str, str, str]]:
    """(kind, goal, first observation) of each task."""
    environment = specs()[family].make(None)
    try:
        return [(task.kind, task.goal, environment.reset(options={"task": task})[0]) for task in tasks]
    finally:
        environment.close()


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, marks=[pytest.mark.slow(SLOW[family])] if family in SLOW else [])
        for family in FAMILIES
    ],
)
def test_no_task_of_another_seed_is_one_of_seed_0(family: str) -> None:
    """Tasks of a kind of which there are too few for that may begin like one of seed 0, and say so in `few_tasks`; they
    are other tasks all the same."""
    few = specs()[family].suites.few_tasks if family == "babyai" else {}
    seeds = OF_PDDL if family == "pddl" else SEEDS
    suites = {seed: _suite(family, seed) for seed in seeds}
    starts = {seed: _starts(family, tasks) for seed, tasks in suites.items()}
    for seed in seeds:
        read = Counter((goal, observation) for _, goal, observation in starts[seed])
        assert [start for start, count in read.items() if count > 1] == [], seed
    for seed in seeds[1:]:
        taken = {(goal, observation) for _, goal, observation in starts[0]}
        alike = [kind for kind, *start in starts[seed] if tuple(start) in taken]
        assert set(alike) <= set(few), seed
        if family != "sciworld":  # its contract knows the shapes of seed 0 alone
            shapes = [{contract(family).shape(task) for task in suites[each]} for each in (0, seed)]
            assert len(shapes[1]) == len(suites[seed])
            assert not shapes[0] & shapes[1], seed


@pytest.mark.slow
def test_what_is_said_of_kinds_with_few_tasks_is_so() -> None:
    from evalharness.envs.sciworld.kinds import EXAMPLE, FEW_VARIATIONS, PUBLISHED, QUOTA

    simulator = Simulator()
    try:
        unpublished = {
            kind: simulator.variations(kind)
            - len({*PUBLISHED.get(kind, ()), *(number for task, number in EXAMPLE if task == kind)})
            for kind in QUOTA
        }
    finally:
        simulator.close()
    assert {kind: count for kind, count in unpublished.items() if count < 100} == FEW_VARIATIONS
    assert all(unpublished[kind] >= 2 * QUOTA[kind] for kind in QUOTA)
