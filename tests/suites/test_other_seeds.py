"""No open suite of another seed has a task of suite seed 0, or one twice: neither in the letters of what a player reads
first nor up to renaming."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from pddl_suite import other_suite

from evalharness.envs import specs
from evalharness.envs.base import Task
from evalharness.envs.sciworld.open.generator import generate_kind
from evalharness.envs.sciworld.simulator import Simulator
from tests.support.contracts import FAMILIES, contract

OTHER = 777
FEW_VARIATIONS = ["identify-life-stages-2", "power-component"]
"""ScienceWorld's generator takes seven minutes for a suite; these are two of its kinds with the fewest tasks."""


SLOW = {"babyai": 60, "pddl": 20, "sciworld": 40}


def _suite(family: str, seed: int, factory: pytest.TempPathFactory) -> list[Task]:
    if family == "pddl" and seed != 0:
        return other_suite(factory)
    if family != "sciworld":
        return specs()[family].suites.load_tasks("open", None, seed)
    if seed == 0:
        return [
            task for task in specs()[family].suites.load_tasks("open", None, 0) if task.kind in FEW_VARIATIONS
        ]
    simulator = Simulator()
    try:
        return [task for kind in FEW_VARIATIONS for task in generate_kind(simulator, kind, seed, 0)]
    finally:
        simulator.close()


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
def test_no_task_of_another_seed_is_one_of_seed_0(
    family: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Tasks of a kind of which there are too few for that may begin like one of seed 0, and say so in `few_tasks`; they
    are other tasks all the same."""
    few = specs()[family].suites.few_tasks if family == "babyai" else {}
    suites = [_suite(family, seed, tmp_path_factory) for seed in (0, OTHER)]
    starts = [_starts(family, tasks) for tasks in suites]
    for each in starts:
        read = Counter((goal, observation) for _, goal, observation in each)
        assert [start for start, count in read.items() if count > 1] == []
    taken = {(goal, observation) for _, goal, observation in starts[0]}
    alike = [kind for kind, *start in starts[1] if tuple(start) in taken]
    assert set(alike) <= set(few)
    shapes = [{contract(family).shape(task) for task in tasks} for tasks in suites]
    assert len(shapes[1]) == len(suites[1])
    assert not shapes[0] & shapes[1]


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
