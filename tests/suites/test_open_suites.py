"""What all families promise of their open suite: as many tasks as published, all different, none trivial, frozen."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from functools import cache

import pytest

from envs import specs
from envs.alfworld.households import Household
from envs.alfworld.rooms import ROOMS
from envs.babyai.actions import CHECK, available
from envs.babyai.world import World as BabyAIWorld
from envs.base import Task
from envs.jericho.open_suite import QUESTS
from envs.jericho.quests import make_quest, themes
from envs.pddl.engine import World as PddlWorld
from envs.pddl.form import form
from envs.pddl.syntax import parse_domain, parse_problem
from envs.sciworld.open_suite import frozen_cases
from evalharness.suites.open import check_frozen, frozen_proofs

COUNTS = {"alfworld": 134, "babyai": 112, "jericho": 20, "pddl": 60, "sciworld": 90}
FAMILIES = tuple(COUNTS)

COLOR = r"\b(red|green|blue|purple|yellow|grey)\b"


@cache
def suite(family: str) -> list[Task]:
    return specs()[family].load_tasks("open", None, 0)


def numbered(text: str, pattern: str) -> str:
    """`text` with what the pattern finds replaced by its number in order of appearance."""
    found: dict[str, str] = {}
    return re.sub(pattern, lambda match: found.setdefault(match[0], f"<{len(found)}>"), text)


def household_shape(task: Task) -> object:
    payload = task.payload
    return Household.from_json(
        payload["household"], kind=task.kind, object_type=payload["object"], target_type=payload["target"]
    ).shape()


def grid_shape(task: Task) -> object:
    """Mission and grid with the colours numbered as they appear in them."""
    world = BabyAIWorld(task.kind, task.payload["seed"], task.payload.get("parameters"))
    simulator = world.simulator
    things = [
        "." if thing is None else f"{thing.color} {thing.type} {getattr(thing, 'is_locked', '')}"
        for thing in simulator.grid.grid
        if thing is None or thing.type != "wall"
    ]
    where = f"{simulator.agent_pos} {simulator.agent_dir} {simulator.grid.width}"
    return task.kind, numbered("\n".join([task.goal, where, *things]), COLOR)


def story_shape(task: Task) -> object:
    """A hand-written story is like no other; a quest is its map, gates and hiding places, whatever its theme says."""
    number = task.index - (COUNTS["jericho"] - QUESTS)
    if number < 0:
        return tuple(task.payload["plan"])
    quest = make_quest(0, number)
    return (
        tuple((room.region, tuple(sorted(room.exits.items()))) for room in quest.rooms),
        quest.passages,
        tuple(sorted((item.what, item.room, item.place) for item in quest.items.values())),
    )


def problem_shape(task: Task) -> object:
    domain = parse_domain(task.payload["domain"])
    return form(domain, parse_problem(task.payload["problem"], domain))


SHAPES: dict[str, Callable[[Task], object]] = {
    "alfworld": household_shape,
    "babyai": grid_shape,
    "jericho": story_shape,
    "pddl": problem_shape,
    "sciworld": lambda task: frozen_cases()[task.index].shape(),
}


def goal_template(task: Task) -> str:
    """The goal without the names in it."""
    match task.family:
        case "alfworld":
            things = f"{task.payload['object']}|{task.payload['target']}"
            return re.sub(rf"\b({things})\b", "<>", task.goal)
        case "babyai":
            return re.sub(rf"{COLOR}|\b(ball|box|key|door|object)\b|\b(a|the)\b", "<>", task.goal)
        case "pddl":
            return task.payload["template"] + task.kind
        case "sciworld":
            return task.goal[:30]
    known = [words["name"] for theme in themes().values() for words in (theme["treasure"], theme["altar"])]
    return re.sub("|".join(map(re.escape, known)), "<>", task.goal)


@pytest.mark.parametrize("family", FAMILIES)
def test_there_are_as_many_tasks_as_published_ones(family: str) -> None:
    tasks = suite(family)
    assert [task.id for task in tasks] == [f"{family}/open/{i:03d}" for i in range(COUNTS[family])]
    assert specs()[family].expected["open"] == COUNTS[family]
    assert {task.difficulty for task in tasks} == {"easy", "hard"}
    for task in tasks:
        assert Task.from_json(json.loads(json.dumps(task.to_json()))).content_hash == task.content_hash


@pytest.mark.parametrize("family", FAMILIES)
def test_the_tasks_are_the_frozen_ones(family: str) -> None:
    check_frozen(specs()[family], suite(family))


def test_every_frozen_task_has_a_plan_of_3_to_30_turns() -> None:
    proofs = frozen_proofs()
    counted = [row for task_id, row in proofs.items() if task_id.split("/")[0] in COUNTS]
    assert len(counted) == sum(COUNTS.values()) == 416
    assert all(3 <= row.proof.plan_turns <= 30 for row in proofs.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_no_two_tasks_are_equal_up_to_renaming(family: str) -> None:
    shapes = [SHAPES[family](task) for task in suite(family)]
    assert len(set(shapes)) == len(shapes)


@pytest.mark.parametrize("family", FAMILIES)
def test_at_least_three_sorts_of_goal(family: str) -> None:
    assert len({goal_template(task) for task in suite(family)}) >= 3


# --- no task can be solved in two turns, by trying all of them -----------------------------------------------------


def test_no_household_is_done_in_two_commands() -> None:
    """All pairs of commands, in ten households. The oracle's plans, never under three, are shortest by construction."""
    env = specs()["alfworld"].make(None)
    for task in random.Random(0).sample(suite("alfworld"), 10):
        env.reset(options={"task": task})
        for first in env.valid_actions():
            env.reset(options={"task": task})
            assert not env.step(first)[4]["success"]
            for second in env.valid_actions():
                env.reset(options={"task": task})
                env.step(first)
                assert not env.step(second)[4]["success"], (task.id, first, second)


def test_no_babyai_mission_is_done_in_two_sentences() -> None:
    for task in suite("babyai"):
        world = BabyAIWorld(task.kind, task.payload["seed"], task.payload.get("parameters"))
        start = world.state()
        for first, opening in available(world.view, world.direction).moves.items():
            if first == CHECK:
                continue
            outcome = world.perform(opening, stop_at_end=True)
            assert not outcome.succeeded, (task.id, first)
            if outcome.ended:
                world.restore(start)
                continue
            after = world.state()
            for sentence, moves in available(world.view, world.direction).moves.items():
                if sentence != CHECK:
                    assert not world.perform(moves, stop_at_end=True).succeeded, (task.id, first, sentence)
                    world.restore(after)
            world.restore(start)


def test_no_planning_problem_is_solved_in_two_actions() -> None:
    for task in suite("pddl"):
        domain = parse_domain(task.payload["domain"])
        world = PddlWorld(domain, parse_problem(task.payload["problem"], domain))
        states = {world.initial}
        for _ in range(3):
            assert not any(map(world.solved, states)), task.id
            states = {world.result(state, action) for state in states for action in world.applicable(state)}


@pytest.mark.slow
def test_no_science_task_is_done_in_two_turns() -> None:
    """In the task with the fewest pairs; they take the simulator a minute.

    The simulator's goals are sequences that begin with a focus, and a wrong focus fails the task. So one of two turns
    is a right focus: the first, and the second is anything; or the second, on something that the first has made,
    shown or reached.
    """
    env = specs()["sciworld"].make(None)
    try:
        task = min(suite("sciworld"), key=lambda task: frozen_cases()[task.index].choices[:2])
        tried = 0
        env.reset(options={"task": task})
        wrong: set[str] = set()
        for first in sorted(env.valid_actions(), key=lambda action: not action.startswith("focus on ")):
            env.reset(options={"task": task})
            _, _, ended, _, info = env.step(first)
            assert not info["success"], (task.id, first)
            if first.startswith("focus on ") and info["progress"] == 0:
                wrong.add(first)
            if ended or first in wrong:
                continue
            after = env.valid_actions()
            if not first.startswith("focus on "):
                after = [action for action in after if action.startswith("focus on ") and action not in wrong]
            for second in after:
                env.reset(options={"task": task})
                env.step(first)
                assert not env.step(second)[4]["success"], (task.id, first, second)
                tried += 1
        assert tried > 0
    finally:
        env.close()


def test_the_rooms_of_the_households_are_those_of_the_tables() -> None:
    assert {task.payload["household"]["room"] for task in suite("alfworld")} == set(ROOMS)
