"""Describe a generated household, and build its game (PDDL domain, PDDL problem and text grammar).

The payload of a task describes the household: room, receptacles, places of things, and goal. The game depends only on
this description, so it is the same on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from evalharness.envs.alfworld.open.oracle import Layout, kind_in
from evalharness.envs.alfworld.open.rooms import (
    CLEANABLE,
    COOLABLE,
    HEATABLE,
    LAMP,
    OPENABLE,
    ROOMS,
    SLICEABLE,
    VESSELS,
    Room,
)
from evalharness.envs.base import InvalidTaskError, Task

_GOALS = {
    "put": ("put a {object} in {target}.", "put some {object} on {target}."),
    "clean": ("put a clean {object} in {target}.", "clean some {object} and put it in {target}."),
    "heat": ("put a hot {object} in {target}.", "heat some {object} and put it in {target}."),
    "cool": ("put a cool {object} in {target}.", "cool some {object} and put it in {target}."),
    "examine": ("look at {object} under the {target}.", "examine the {object} with the {target}."),
    "puttwo": ("put two {object} in {target}.", "find two {object} and put them in {target}."),
}
"""Kind of task -> the two sentences with which the published games state such a goal."""

_WORD = re.compile(r"[a-z]+")
_THING = re.compile(r"[a-z]+ [1-9]\d?")
_STATES = {"clean": "isClean", "heat": "isHot", "cool": "isCool"}
_MIDDLE = "spot_bar_0"


@dataclass(frozen=True)
class Household:
    room: str
    receptacles: Mapping[str, int]
    """Kind of receptacle -> number of such receptacles in the room."""
    contents: Mapping[str, tuple[str, ...]]
    """Receptacle (`cabinet 2`) -> things in it (`mug 1`)."""
    kind: str
    object_type: str
    target_type: str
    wording: int = 0
    """Index of the goal's sentence in `_GOALS`."""

    @property
    def goal(self) -> str:
        return _GOALS[self.kind][self.wording].format(object=self.object_type, target=self.target_type)

    @property
    def places(self) -> list[str]:
        return [f"{kind} {i}" for kind, count in self.receptacles.items() for i in range(1, count + 1)]

    def layout(self) -> Layout:
        """Return the layout, with which the oracle can plan before the game is built."""
        where = {thing: (place,) for place, things in self.contents.items() for thing in things}
        fixtures = ROOMS[self.room].fixtures
        return Layout(
            things={thing: places for thing, places in where.items() if kind_in(thing) not in fixtures},
            lamps={thing: places for thing, places in where.items() if kind_in(thing) == LAMP},
            spots={place: place for place in self.places},
            closed=frozenset(place for place in self.places if kind_in(place) in OPENABLE),
            start="",
        )

    def shape(self) -> tuple[object, ...]:
        """Return the task without the numbers in names: two tasks of one shape differ only in these numbers."""
        filled = sorted(
            (kind_in(place), tuple(sorted(kind_in(thing) for thing in self.contents.get(place, ()))))
            for place in self.places
        )
        return (self.room, self.kind, self.object_type, self.target_type, tuple(filled))

    def payload(self) -> dict[str, Any]:
        """Return the payload of the household's task, from which `household_of` reads the household again."""
        return {
            "household": {
                "room": self.room,
                "receptacles": dict(self.receptacles),
                "contents": {place: list(things) for place, things in self.contents.items()},
                "wording": self.wording,
            },
            "object": self.object_type,
            "target": self.target_type,
        }


def household_of(task: Task) -> Household:
    """Return the household in a task's payload. Raise InvalidTaskError if the payload is invalid."""
    try:
        data = task.payload["household"]
        household = Household(
            room=str(data["room"]),
            receptacles={str(name): int(count) for name, count in data["receptacles"].items()},
            contents={str(place): tuple(map(str, things)) for place, things in data["contents"].items()},
            kind=task.kind,
            object_type=str(task.payload["object"]),
            target_type=str(task.payload["target"]),
            wording=int(data["wording"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidTaskError(f"not the description of a household: {error!r}") from None
    things = [thing for inside in household.contents.values() for thing in inside]
    words = [*household.receptacles, household.object_type, household.target_type]
    if (
        household.room not in ROOMS
        or household.kind not in _GOALS
        or household.wording not in (0, 1)
        or not set(household.contents) <= set(household.places)
        or len(set(things)) != len(things)
        or not all(_THING.fullmatch(thing) for thing in things)
        or not all(_WORD.fullmatch(word) for word in words)
    ):
        raise InvalidTaskError("a household's description contradicts itself")
    return household


def subgoals(kind: str, object_type: str, target_type: str) -> tuple[str, ...]:
    """Return the task's subgoals: regular expressions that observations must match, as in AgentBoard's label file.

    `target_type`: type of the receptacle to put things in, or of the lamp to look at things with.
    """
    first = (rf"^(?=.* you see)(?=.*a {object_type} \d+)", rf"You pick up the {object_type} \d+")
    match kind:
        case "put":
            return first
        case "clean":
            return (*first, rf"You clean the {object_type} \d+")
        case "heat" | "cool":
            return (*first, rf"You {kind} the {object_type} \d+ using the")
        case "examine":
            return (*first, rf"^(?=.* you see)(?=.*a {target_type})")
        case "puttwo":
            return (*first, rf"You put the {object_type} \d+ in/on the {target_type} \d+")
    raise ValueError(f"no task of the kind {kind!r}")


def build_game(household: Household) -> dict[str, str]:
    """Return the content of the household's `game.tw-pddl` file, which TextWorld can play, too."""
    return {
        "pddl_domain": _file("household.pddl"),
        "grammar": _file("household.twl2").replace("@GOAL@", household.goal),
        "pddl_problem": _problem(household),
    }


@cache
def _file(name: str) -> str:
    return files("evalharness.envs.alfworld.open").joinpath(name).read_text(encoding="utf-8")


def _problem(household: Household) -> str:
    room = ROOMS[household.room]
    things = [thing for inside in household.contents.values() for thing in inside]
    names = _identifiers([*household.places, *things])
    rtypes = sorted({kind_in(place) for place in household.places} | {"sinkbasin", "microwave", "fridge"})
    otypes = sorted({kind_in(thing) for thing in things} | {"knife", "butterknife", household.object_type})
    spots = {place: f"spot_bar_{i}" for i, place in enumerate(household.places, 1)}
    objects = [
        "robot - agent",
        f"{' '.join([_MIDDLE, *spots.values()])} - location",
        f"{' '.join(names[place] for place in household.places)} - receptacle",
        f"{' '.join(names[thing] for thing in sorted(things))} - thing",
        f"{' '.join(f'{kind}Type' for kind in rtypes)} - rtype",
        f"{' '.join(f'{kind}Type' for kind in otypes)} - otype",
    ]
    facts = [f"atLocation robot {_MIDDLE}"]
    for place in household.places:
        facts.append(f"receptacleAtLocation {names[place]} {spots[place]}")
        facts.append(f"receptacleType {names[place]} {kind_in(place)}Type")
        if kind_in(place) in OPENABLE:
            facts.append(f"openable {names[place]}")
    for place, inside in household.contents.items():
        for thing in inside:
            facts.append(f"inReceptacle {names[thing]} {names[place]}")
            facts.append(f"objectType {names[thing]} {kind_in(thing)}Type")
            facts += (f"{trait} {names[thing]}" for trait in _traits(room, kind_in(thing)))
    for kind in rtypes:
        facts += (f"canContain {kind}Type {thing}Type" for thing in room.holds(kind) if thing in otypes)
    return "\n".join(
        [
            f"(define (problem {household.room}) (:domain household)",
            f"(:objects {' '.join(objects)})",
            "(:init",
            *(f"({fact})" for fact in facts),
            ")",
            f"(:goal {_goal(household)}))",
        ]
    )


def _identifiers(names: list[str]) -> dict[str, str]:
    """Map each name to an identifier from which `readable_names` makes this name."""
    most: dict[str, int] = {}
    for name in names:
        kind, _, number = name.rpartition(" ")
        most[kind] = max(most.get(kind, 0), int(number))
    identifiers = {}
    for name in names:
        kind, _, number = name.rpartition(" ")
        place = f"{most[kind] - int(number):02d}"
        stem = kind.removesuffix("basin")
        identifiers[name] = f"{stem}_bar_{place}" + ("_bar_basin" if stem != kind else "")
    return identifiers


def _traits(room: Room, kind: str) -> Iterator[str]:
    if kind == LAMP:
        yield "toggleable"
    if kind in room.fixtures:
        return
    yield "pickupable"
    for trait, kinds in (
        ("cleanable", CLEANABLE),
        ("heatable", HEATABLE),
        ("coolable", COOLABLE),
        ("sliceable", SLICEABLE),
        ("vessel", VESSELS),
    ):
        if kind in kinds:
            yield trait


def _goal(household: Household) -> str:
    wanted, target = f"{household.object_type}Type", f"{household.target_type}Type"
    if household.kind == "examine":
        return (
            f"(exists (?a - agent ?o - thing ?lamp - thing ?r - receptacle ?l - location) (and (holds ?a ?o)"
            f" (objectType ?o {wanted}) (objectType ?lamp {target}) (isToggled ?lamp) (inReceptacle ?lamp ?r)"
            f" (receptacleAtLocation ?r ?l) (atLocation ?a ?l)))"
        )
    if household.kind == "puttwo":
        return (
            f"(exists (?r - receptacle ?o - thing ?p - thing) (and (not (= ?o ?p)) (receptacleType ?r {target})"
            f" (objectType ?o {wanted}) (inReceptacle ?o ?r) (objectType ?p {wanted}) (inReceptacle ?p ?r)))"
        )
    state = f" ({_STATES[household.kind]} ?o)" if household.kind in _STATES else ""
    return (
        f"(exists (?r - receptacle ?o - thing) (and (receptacleType ?r {target}) (inReceptacle ?o ?r)"
        f" (objectType ?o {wanted}){state}))"
    )
