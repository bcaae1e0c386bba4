"""What all families promise of their open suite: as many tasks as published, all different, none trivial, frozen."""

from __future__ import annotations

import json
import random
from functools import cache

import pytest

from evalharness.envs import specs
from evalharness.envs.base import Task
from evalharness.suites.open import check_frozen, read_frozen_proofs
from tests.support.contracts import FAMILIES, contract


@cache
def suite(family: str) -> list[Task]:
    return specs()[family].suites.load_tasks("open", None, 0)


@pytest.mark.parametrize("family", FAMILIES)
def test_there_are_as_many_tasks_as_the_family_says(family: str) -> None:
    tasks, expected = suite(family), contract(family).open_tasks
    assert [task.id for task in tasks] == [f"{family}/open/{i:03d}" for i in range(expected)]
    assert specs()[family].suites.expected["open"] == expected
    assert specs()[family].suites.expected.get("agentboard", expected) == expected
    assert {task.difficulty for task in tasks} == {"easy", "hard"}
    for task in tasks:
        assert Task.from_json(json.loads(json.dumps(task.to_json()))).content_hash == task.content_hash


@pytest.mark.parametrize("family", FAMILIES)
def test_the_tasks_are_the_frozen_ones(family: str) -> None:
    check_frozen(specs()[family], suite(family))


def test_every_frozen_task_has_a_plan_of_3_to_30_turns() -> None:
    proofs = read_frozen_proofs()
    assert len(proofs) == sum(contract(family).open_tasks for family in FAMILIES)
    assert all(3 <= row.proof.plan_turns <= 30 for row in proofs.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_no_two_tasks_are_equal_up_to_renaming(family: str) -> None:
    shapes = [contract(family).shape(task) for task in suite(family)]
    assert len(set(shapes)) == len(shapes)


@pytest.mark.parametrize("family", FAMILIES)
def test_at_least_three_sorts_of_goal(family: str) -> None:
    assert len({contract(family).goal_template(task) for task in suite(family)}) >= 3


@pytest.mark.parametrize(
    "family", [pytest.param(f, marks=[pytest.mark.slow] if contract(f).slow else []) for f in FAMILIES]
)
def test_no_task_can_be_solved_in_two_turns(family: str) -> None:
    check = contract(family).none_is_done_in_two_turns
    if check is None:
        pytest.skip("a task can be solved by a guess")
    check(suite(family))


@pytest.mark.slow(20)
@pytest.mark.parametrize("family", ["alfworld", "babyai", "jericho", "pddl"])
def test_acting_at_random_seldom_succeeds(family: str) -> None:
    """Picking uniformly among the valid actions for 30 turns. In Jericho, whose list takes up to a second, of every
    third task; ScienceWorld's takes longer, and HotpotQA's is a suggestion. The floors are in results/reference."""
    spec, tasks = specs()[family], suite(family)[:: 3 if family == "jericho" else 1]
    environment, won = spec.make(None), 0
    for task in tasks:
        chance = random.Random(task.id)
        environment.reset(options={"task": task})
        for _ in range(30):
            choices = [action for action in environment.valid_actions() if action != spec.actions.help_in()]
            _, _, terminated, _, info = environment.step(chance.choice(choices))
            if terminated:
                won += info["success"]
                break
    assert won / len(tasks) <= 0.2  # BabyAI: 17 of 112; its floor, over many attempts, is 9.5 %
