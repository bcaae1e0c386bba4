"""Generate the open suite: four tasks of each of AgentBoard's 28 levels, with other minigrid seeds.

The generator tries minigrid seeds in order. It accepts a seed if its mission has at least two milestones, if a random
policy solves at most one of twelve attempts, and if the oracle solves it with full progress in 3 to 20 turns. No task
has both goal and first observation of another task of its suite, of suite seed 0, or of the published suite. The levels
of `FEW_STARTS` have too few first observations for this rule. Their tasks differ only within a suite, and have other
plans than the tasks of seed 0.

The tasks of suite seed 0 are stored in `open_suite.jsonl`. `python -m evalharness.envs.babyai.open.generator` writes
this file again in some minutes.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path
from typing import Any

from evalharness.envs.babyai.actions import CHECK, available
from evalharness.envs.babyai.levels import FAMILY, FEW_STARTS, LEVELS, SEEDS
from evalharness.envs.babyai.mission import milestones
from evalharness.envs.babyai.observation import describe
from evalharness.envs.babyai.open.oracle import Oracle
from evalharness.envs.babyai.rules import MissionRules
from evalharness.envs.babyai.world import World
from evalharness.envs.base import MAX_TURNS, SuiteExhaustedError, Task
from evalharness.envs.difficulty import difficulty, search_bits
from evalharness.envs.frozen import FROZEN_SEED, read_frozen_tasks, write_table

PER_LEVEL = 4
MOST_TRIED = 20_000
"""Maximum number of seeds of a level that are tried for one task."""
SHORTEST_PLAN, LONGEST_PLAN = 3, 20
"""Limits for the length of the oracle's plan. The turn limit is higher: a policy must explore, unlike the oracle."""
HARD_BITS = 19.0
"""A task is hard if `search_bits` of its plan is at least this value; about as many tasks are hard as in the published
suite (26). Every turn counts as many choices as there are valid actions at the start."""
ATTEMPTS, MOST_SUCCESSES = 12, 1
"""Number of attempts by a random policy, and the largest number of successes with which a seed is accepted."""

VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "GoToRedBallGrey": {"room_size": 16, "num_dists": 10},
    "GoToRedBall": {"room_size": 16, "num_dists": 10},
    "GoToRedBallNoDists": {"room_size": 14},
    "GoToObjS6": {"room_size": 14},
    "GoToLocalS8N7": {"room_size": 16, "num_dists": 10},
    "GoToRedBlueBall": {"room_size": 16, "num_dists": 10},
    "GoToDoor": {"room_size": 12},
    "GoToObjDoor": {"room_size": 14},
    "OpenRedDoor": {"room_size": 13},
    "OpenDoorLoc": {"room_size": 12},
    "OpenRedBlueDoorsDebug": {"room_size": 9},
    "OpenDoorsOrderN4Debug": {"room_size": 9},
    "PickupLoc": {"room_size": 10},
    "PickupDistDebug": {"room_size": 9},
    "PickupAbove": {"room_size": 9},
}
"""Level -> parameters for larger rooms: in minigrid's rooms, a random policy solves 6 to 10 of 10 attempts."""


FROZEN = Path(__file__).with_name("open_suite.jsonl")

Start = tuple[str, str]
"""(goal, first observation) of a task"""


def generate(suite_seed: int) -> Iterator[Task]:
    """Yield 112 tasks, level by level, in about a minute. The same seed gives the same suite on any machine."""
    taken: set[Start] = set()
    few = {level: list(generate_level(level, suite_seed)) for level in LEVELS if level in FEW_STARTS}
    taken.update(start_of(task) for tasks in few.values() for task in tasks)
    for level in LEVELS:
        for task in few.get(level) or generate_level(level, suite_seed, frozenset(taken)):
            taken.add(start_of(task))
            yield task


def generate_level(level: str, suite_seed: int, taken: frozenset[Start] = frozenset()) -> Iterator[Task]:
    """Yield the tasks of one level. `taken`: goals and first observations of the suite's other levels, to be avoided.

    Raise SuiteExhaustedError if `MOST_TRIED` seeds give no new task.
    """
    before = () if suite_seed == FROZEN_SEED else read_frozen_tasks(FROZEN)
    few = level in FEW_STARTS
    starts = set(taken) if few else {*taken, *_list_published_starts(), *map(start_of, before)}
    plans = {(task.goal, tuple(_plan(_world(task)))) for task in before if few and task.kind == level}
    digest = hashlib.sha256(f"babyai/open/{suite_seed}/{level}".encode()).digest()
    seed = 10_000 + int.from_bytes(digest[:3], "big")  # so it is not one of the published seeds 1234 to 1237
    index = PER_LEVEL * LEVELS.index(level)
    count = tried = 0
    while count < PER_LEVEL:
        if tried == MOST_TRIED:
            raise SuiteExhaustedError(
                "BabyAI", suite_seed, f"{count} of {PER_LEVEL} tasks of {level} were found in {tried} tries"
            )
        accepted = _accept(level, seed, starts, index + count)
        seed += 1
        tried += 1
        if accepted is not None and (accepted[0].goal, accepted[1]) not in plans:
            task, plan = accepted
            plans.add((task.goal, plan))
            starts.add(start_of(task))
            count += 1
            tried = 0
            yield task


def _world(task: Task) -> World:
    return World(task.kind, task.payload["seed"], task.payload.get("parameters"))


def _start(world: World) -> Start:
    return world.mission, describe(world.view)


@cache
def _start_at(level: str, seed: int) -> Start:
    return _start(World(level, seed, VARIANTS.get(level)))


def start_of(task: Task) -> Start:
    return _start_at(task.kind, task.payload["seed"])


@cache
def _list_published_starts() -> frozenset[Start]:
    return frozenset(_start(World(level, seed)) for level in LEVELS for seed in SEEDS)


def _plan(world: World) -> list[str]:
    return Oracle(world, MissionRules(world, milestones(world))).plan(limit=LONGEST_PLAN)


def _accept(level: str, seed: int, taken: Set[Start], index: int) -> tuple[Task, tuple[str, ...]] | None:
    """Return the task of a level and seed, and its plan; None if the seed does not meet the suite's conditions."""
    parameters = VARIANTS.get(level, {})
    world = World(level, seed, parameters)
    if _always_fails(world.simulator.instrs) or _start(world) in taken:
        return None
    wanted = milestones(world)
    if len(wanted) < 2 or _random_successes(world, seed) > MOST_SUCCESSES:
        return None
    choices = start_choices(world)
    plan = _plan(world)
    if len(plan) < SHORTEST_PLAN:
        return None
    task = Task(
        id=f"{FAMILY}/open/{index:03d}",
        family=FAMILY,
        suite="open",
        index=index,
        goal=world.mission,
        difficulty=difficulty(search_bits([choices] * len(plan)), HARD_BITS),
        kind=level,
        labels="simulator",
        subgoals=tuple(milestone.text for milestone in wanted),
        payload={"level": level, "seed": seed} | ({"parameters": dict(parameters)} if parameters else {}),
    )
    return task, tuple(plan)


def _always_fails(mission: Any) -> bool:
    """Return whether the agent cannot avoid that minigrid fails the mission. If the second of two ordered actions is
    strict (no other door may be opened), minigrid counts the door of the first action as the wrong door."""
    last = {"BeforeInstr": "instr_b", "AfterInstr": "instr_a"}.get(type(mission).__name__)
    return last is not None and getattr(getattr(mission, last), "strict", False)


def _random_successes(world: World, seed: int) -> int:
    """Return how many attempts a random policy solves, at most `MOST_SUCCESSES` + 1. Restore the first state."""
    start = world.state()
    successes = 0
    for attempt in range(ATTEMPTS):
        chance = random.Random(f"{seed}/{attempt}")
        for _ in range(MAX_TURNS):
            moves = available(world.view, world.direction).moves
            sentence = chance.choice(sorted(moves.keys() - {CHECK}))
            outcome = world.perform(moves[sentence], stop_at_end=True)
            if outcome.succeeded or outcome.failed:
                successes += outcome.succeeded
                break
        world.restore(start)
        if successes > MOST_SUCCESSES:
            break
    return successes


def start_choices(world: World) -> int:
    return len(available(world.view, world.direction).moves.keys() - {CHECK})


if __name__ == "__main__":
    write_table(FROZEN, (task.to_json() for task in generate(FROZEN_SEED)))
