"""Generate the open suite: 134 household tasks with the published number of tasks of each kind.

The same suite seed gives the same tasks. A random household is accepted if its shortest plan has at least three
commands. No two tasks of a suite are equal except for the numbers in names, and no two have the same goal and first
observation. Tasks of other suite seeds are compared with those of seed 0, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

from evalharness.envs.alfworld.open.households import Household, subgoals
from evalharness.envs.alfworld.open.oracle import find_commands, kind_in
from evalharness.envs.alfworld.open.rooms import (
    CLEANABLE,
    CLEANED_AT,
    COOLABLE,
    COOLED_AT,
    HEATABLE,
    HEATED_AT,
    LAMP,
    ROOMS,
)
from evalharness.envs.base import MAX_TURNS, MIN_TURNS, Task
from evalharness.envs.difficulty import difficulty, search_bits
from evalharness.envs.frozen import FROZEN_SEED

QUOTA = {
    ("put", "kitchen"): 9,
    ("put", "livingroom"): 6,
    ("put", "bedroom"): 6,
    ("put", "bathroom"): 3,
    ("clean", "kitchen"): 21,
    ("clean", "bathroom"): 10,
    ("heat", "kitchen"): 23,
    ("cool", "kitchen"): 21,
    ("examine", "bedroom"): 12,
    ("examine", "livingroom"): 6,
    ("puttwo", "kitchen"): 3,
    ("puttwo", "livingroom"): 5,
    ("puttwo", "bedroom"): 3,
    ("puttwo", "bathroom"): 6,
}
"""(kind, room) -> number of tasks. The numbers are those of the published suite, except that all its 18 `examine` tasks
are in bedrooms."""

HARD_BITS = 20.0
"""A task is hard if `search_bits` of its plan is at least this value; about as many tasks are hard as in the published
suite. Each turn counts the receptacles as choices, because the agent can go to any receptacle."""

_TREATED = {
    "clean": (CLEANABLE, CLEANED_AT),
    "heat": (HEATABLE, HEATED_AT),
    "cool": (COOLABLE, COOLED_AT),
}


def generate(suite_seed: int) -> Iterator[Task]:
    for index, (household, length) in enumerate(_households(suite_seed)):
        yield _task(index, household, length)


def _households(suite_seed: int) -> Iterator[tuple[Household, int]]:
    """Yield each household with the length of its plan."""
    before = () if suite_seed == FROZEN_SEED else _households(FROZEN_SEED)
    seen = {value for household, _ in before for value in _unique_values(household)}
    wanted = [pair for pair, count in QUOTA.items() for _ in range(count)]
    Random(f"alfworld open {suite_seed} order").shuffle(wanted)
    counts: Counter[tuple[str, str, str]] = Counter()
    for index, (kind, room) in enumerate(wanted):
        rng = Random(f"alfworld open {suite_seed} {index}")
        household, length = _draw(rng, kind, room, counts)
        while seen.intersection(_unique_values(household)):
            household, length = _draw(rng, kind, room, counts)
        seen.update(_unique_values(household))
        counts[kind, household.object_type, household.target_type] += 1
        yield household, length


def _unique_values(household: Household) -> tuple[object, object]:
    """Return two values that no other task may have: the task without numbers, and its goal with the receptacles."""
    return household.shape(), (household.goal, *household.places)


def _task(index: int, household: Household, length: int) -> Task:
    return Task(
        id=f"alfworld/open/{index:03d}",
        family="alfworld",
        suite="open",
        index=index,
        goal=household.goal,
        difficulty=difficulty(search_bits([len(household.places)] * length), HARD_BITS),
        kind=household.kind,
        labels="ours",
        subgoals=subgoals(household.kind, household.object_type, household.target_type),
        payload=household.payload(),
    )


def _draw(rng: Random, kind: str, room: str, counts: Counter[tuple[str, str, str]]) -> tuple[Household, int]:
    """Draw a household, and return it with the length of its plan. Choose among the goals that are rarest so far."""
    while True:
        receptacles, contents = _furnish(rng, room)
        choices = _choices(kind, room, receptacles, contents)
        if not choices:
            continue
        least = min(counts[kind, *choice] for choice in choices)
        thing, target = rng.choice([choice for choice in choices if counts[kind, *choice] == least])
        household = Household(room, receptacles, contents, kind, thing, target, rng.randrange(2))
        length = len(find_commands(household.layout(), kind, thing, target))
        if MIN_TURNS <= length <= MAX_TURNS:
            return household, length


def _furnish(rng: Random, room_name: str) -> tuple[dict[str, int], dict[str, tuple[str, ...]]]:
    room = ROOMS[room_name]
    receptacles = {kind: rng.randint(least, most) for kind, (least, most) in room.receptacles.items()}
    receptacles = {kind: count for kind, count in receptacles.items() if count}
    inside: dict[str, list[str]] = {}
    for thing, places in [*room.places.items(), *room.fixtures.items()]:
        open_to = [place for place in places if place in receptacles]
        count = 1 if thing in room.fixtures else rng.randint(0 if rng.random() < 0.3 else 1, room.at_most)
        for number in range(1, count + 1):
            # Draw the kind of receptacle first. Otherwise a thing would be in one of six cabinets six times as often
            # as in the only fridge.
            kind = rng.choice(open_to)
            inside.setdefault(f"{kind} {rng.randint(1, receptacles[kind])}", []).append(f"{thing} {number}")
    order = [f"{kind} {i}" for kind, count in receptacles.items() for i in range(1, count + 1)]
    return receptacles, {place: tuple(inside[place]) for place in order if place in inside}


def _choices(
    kind: str, room_name: str, receptacles: dict[str, int], contents: dict[str, tuple[str, ...]]
) -> list[tuple[str, str]]:
    """Return the possible goals in this room, as pairs (kind of thing, kind of target receptacle or lamp)."""
    room = ROOMS[room_name]
    lies_in: dict[str, list[str]] = {}
    for place, things in contents.items():
        for thing in things:
            lies_in.setdefault(kind_in(thing), []).append(kind_in(place))
    choices = []
    for thing, places in room.places.items():
        count = len(lies_in.get(thing, ()))
        if kind == "examine":
            targets = [LAMP] if count else []
        elif count < (2 if kind == "puttwo" else 1):
            targets = []
        elif kind in _TREATED:
            treatable, treated_at = _TREATED[kind]
            targets = (
                [p for p in places if p in receptacles and p != treated_at] if thing in treatable else []
            )
        else:
            # Exclude receptacles that contain such a thing at the start: part of the goal would already be reached.
            targets = [place for place in places if place in receptacles and place not in lies_in[thing]]
        choices += [(thing, target) for target in targets]
    return choices
