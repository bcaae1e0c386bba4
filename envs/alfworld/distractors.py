"""Things and places that a task's goal does not need, in a generated household."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from evalharness.envs.alfworld.households import Household
from evalharness.envs.alfworld.oracle import TREATED_AT, kind_in
from evalharness.envs.alfworld.rooms import ROOMS
from evalharness.envs.base import Task, distractor_rooms

_NEEDED_PLACES = frozenset(place for places in TREATED_AT.values() for place in places)


def distract(task: Task, count: int) -> Task | None:
    """`count` things of other kinds than the goal's, and receptacles of other kinds than its target, in which some of
    the things lie. None for a published task, which is no household of ours."""
    if "household" not in task.payload:
        return None
    home = Household.from_json(
        task.payload["household"],
        kind=task.kind,
        object_type=task.payload["object"],
        target_type=task.payload["target"],
    )
    room, random = ROOMS[home.room], Random(f"alfworld distractors {count} {task.content_hash}")
    receptacles = dict(home.receptacles)
    spare = [kind for kind in room.receptacles if kind not in _NEEDED_PLACES | {home.target_type}]
    for _ in range(distractor_rooms(count)):
        kind = random.choice(spare)
        receptacles[kind] = receptacles.get(kind, 0) + 1
    inside = {place: list(things) for place, things in home.contents.items()}
    numbers: dict[str, int] = {}
    for name in (thing for things in inside.values() for thing in things):
        kind, number = kind_in(name), int(name.rpartition(" ")[2])
        numbers[kind] = max(numbers.get(kind, 0), number)
    others = [
        (thing, open_to)
        for thing, places in room.places.items()
        if thing != home.object_type and (open_to := [place for place in places if place in receptacles])
    ]
    for _ in range(count):
        thing, open_to = random.choice(others)
        kind = random.choice(open_to)
        numbers[thing] = numbers.get(thing, 0) + 1
        place = f"{kind} {random.randint(1, receptacles[kind])}"
        inside.setdefault(place, []).append(f"{thing} {numbers[thing]}")
    made = replace(home, receptacles=receptacles)
    made = replace(made, contents={place: tuple(inside[place]) for place in made.places if place in inside})
    return replace(task, payload={**task.payload, "household": made.to_json()})
