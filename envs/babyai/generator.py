"""The open suite: levels of the same 28 types, chosen so that acting at random seldom solves them.

For every level successive seeds are tried. A seed is taken when its mission has at least two milestones, a policy
that picks uniformly among the valid actions solves at most one of twelve attempts, and the oracle solves it with full
progress in 3 to 20 turns. No task begins like another of its suite, like one of suite seed 0 or like a published one:
never the same goal with the same first observation. A level of `FEW_STARTS` has too few starts for that: its tasks
begin unlike all others of their suite alone, and none has the plan of one of seed 0. Levels that fit into a few steps
are made in larger rooms.

Suite seed 0 is frozen in `open_suite.json`; `python -m evalharness.envs.babyai.generator` makes that file anew
(minutes).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from evalharness.envs.babyai.actions import CHECK, available
from evalharness.envs.babyai.levels import FAMILY, FEW_STARTS, LEVELS, OPEN_VERSION, SEEDS
from evalharness.envs.babyai.mission import milestones
from evalharness.envs.babyai.observation import describe
from evalharness.envs.babyai.oracle import Oracle
from evalharness.envs.babyai.rules import MissionRules
from evalharness.envs.babyai.world import World
from evalharness.envs.base import MAX_TURNS, Difficulty, SuiteExhaustedError, Task
from evalharness.envs.difficulty import difficulty, search_bits
from evalharness.envs.frozen import FROZEN_SEED, FrozenSuite

PER_LEVEL = 4
MOST_TRIED = 20_000
"""Seeds of a level that are tried for one task."""
SHORTEST_PLAN, LONGEST_PLAN = 3, 20
"""Turns of the oracle. A player without its knowledge must still have turns left to look around."""
HARD_BITS = 19.0
"""Bits of search (`evalharness.envs.difficulty`) from which a task counts as hard, with as many choices at every turn
as at the start. It makes about as many tasks hard as are among the published ones (26)."""
ATTEMPTS, LUCKY = 12, 1
"""Random attempts at a candidate, and how many of them may succeed."""

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
"""Larger rooms for the levels that a random policy solves 6 to 10 times out of 10 at their registered size."""


Start = tuple[str, str]
"""What a player meets: goal, and SHA-256 of the first observation."""


@dataclass(frozen=True)
class OpenCase:
    """One task of the open suite before it is a `Task`."""

    level: str
    seed: int
    goal: str
    subgoals: tuple[str, ...]
    difficulty: Difficulty
    plan_turns: int
    """Length of the oracle's plan."""
    choices: int
    """Valid actions at the start, the help action not counted."""
    plan_sha256: str
    observation_sha256: str
    """Of the first observation: says at once when another version of the simulator makes another level."""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def start(self) -> Start:
        return self.goal, self.observation_sha256

    def to_task(self, index: int) -> Task:
        payload: dict[str, Any] = {"level": self.level, "seed": self.seed}
        if self.parameters:
            payload["parameters"] = dict(self.parameters)
        return Task(
            id=f"{FAMILY}/open/{index:03d}",
            family=FAMILY,
            suite="open",
            index=index,
            goal=self.goal,
            difficulty=self.difficulty,
            kind=self.level,
            labels="simulator",
            subgoals=self.subgoals,
            payload=payload,
        )


FROZEN = FrozenSuite(Path(__file__).with_name("open_suite.json"), OpenCase, OPEN_VERSION)
"""The cases of suite seed 0."""


def open_tasks(suite_seed: int) -> list[Task]:
    """All tasks in order; for another seed than 0 that takes about a minute the first time in a process."""
    return [case.to_task(index) for index, case in enumerate(_cases(suite_seed))]


@cache
def _cases(suite_seed: int) -> tuple[OpenCase, ...]:
    return FROZEN.cases() if suite_seed == FROZEN_SEED else tuple(generate_cases(suite_seed))


def generate(suite_seed: int) -> Iterator[Task]:
    """The suite's tasks as they are found; about a minute for all. The same seed gives the same suite anywhere."""
    return (case.to_task(index) for index, case in enumerate(generate_cases(suite_seed)))


def generate_cases(suite_seed: int) -> Iterator[OpenCase]:
    """All 112 cases of a suite, level by level."""
    taken: set[Start] = set()
    few = {level: list(generate_level(level, suite_seed)) for level in LEVELS if level in FEW_STARTS}
    taken.update(case.start for cases in few.values() for case in cases)
    for level in LEVELS:
        for case in few.get(level) or generate_level(level, suite_seed, frozenset(taken)):
            taken.add(case.start)
            yield case


def generate_level(level: str, suite_seed: int, taken: frozenset[Start] = frozenset()) -> Iterator[OpenCase]:
    """The cases of one level, none of a start in `taken`, which are those of other levels of the suite.

    Raises SuiteExhaustedError when `MOST_TRIED` seeds give no further case.
    """
    before = () if suite_seed == FROZEN_SEED else FROZEN.cases()
    if level not in FEW_STARTS:
        taken |= _published_starts() | {case.start for case in before}
    digest = hashlib.sha256(f"babyai/open/{suite_seed}/{level}".encode()).digest()
    seed = 10_000 + int.from_bytes(digest[:3], "big")  # far from 1234 to 1237, the published seeds
    plans = {(case.goal, case.plan_sha256) for case in before if level in FEW_STARTS}
    starts = set(taken)
    found = tried = 0
    while found < PER_LEVEL:
        if tried == MOST_TRIED:
            raise SuiteExhaustedError(
                "BabyAI", suite_seed, f"{found} of {PER_LEVEL} tasks of {level} were found in {tried} tries"
            )
        case = _accept(level, seed, starts)
        seed += 1
        tried += 1
        if case is not None and (case.goal, case.plan_sha256) not in plans:
            plans.add((case.goal, case.plan_sha256))
            starts.add(case.start)
            found += 1
            tried = 0
            yield case


@cache
def _published_starts() -> frozenset[Start]:
    worlds = [World(level, seed) for level in LEVELS for seed in SEEDS]
    return frozenset((world.mission, _sha256(describe(world.view))) for world in worlds)


def _accept(level: str, seed: int, taken: Set[Start]) -> OpenCase | None:
    """The case of a level and seed when it is fit for the suite and begins like none of `taken`."""
    parameters = VARIANTS.get(level, {})
    world = World(level, seed, parameters)
    observation = describe(world.view)
    if _fails_of_itself(world.simulator.instrs) or (world.mission, _sha256(observation)) in taken:
        return None
    wanted = milestones(world)
    if len(wanted) < 2 or _random_successes(world, seed) > LUCKY:
        return None
    choices = start_choices(world)
    plan = Oracle(world, MissionRules(world, wanted)).plan(limit=LONGEST_PLAN)
    if len(plan) < SHORTEST_PLAN:
        return None
    return OpenCase(
        level=level,
        seed=seed,
        goal=world.mission,
        subgoals=tuple(milestone.text for milestone in wanted),
        difficulty=difficulty(search_bits([choices] * len(plan)), HARD_BITS),
        plan_turns=len(plan),
        choices=choices,
        plan_sha256=_sha256("\n".join(plan)),
        observation_sha256=_sha256(observation),
        parameters=dict(parameters),
    )


def _fails_of_itself(mission: Any) -> bool:
    """minigrid asks the second of two ordered instructions about the very move that completed the first; a strict
    one then sees the wrong door being opened, so a sequence that ends strictly fails whatever the agent does."""
    last = {"BeforeInstr": "instr_b", "AfterInstr": "instr_a"}.get(type(mission).__name__)
    return last is not None and getattr(getattr(mission, last), "strict", False)


def _random_successes(world: World, seed: int) -> int:
    """How many random attempts succeed, counted until they are too many. Leaves the world at its start."""
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
        if successes > LUCKY:
            break
    return successes


def start_choices(world: World) -> int:
    return len(available(world.view, world.direction).moves.keys() - {CHECK})


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    FROZEN.write(generate_cases(FROZEN_SEED))
