"""Find a shortest plan that solves a task, with full knowledge of the places of all things.

Every plan has a few stops: fetch a thing, treat it, put it down, or switch on a lamp. So all combinations of things and
receptacles can be enumerated. The shortest plan is played before it is returned, to prove that it solves the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations, product
from typing import TypeAlias

from evalharness.envs.alfworld.actions import ACTIONS
from evalharness.envs.alfworld.world import World

TREATED_AT = {"clean": ("sinkbasin", "sink"), "heat": ("microwave",), "cool": ("fridge",)}
"""Kind of task -> kinds of receptacle at which the agent can clean, heat or cool a thing."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of things, receptacles and agent at the start; things have their names in observations."""

    things: Mapping[str, tuple[str, ...]]
    """Object that can be picked up -> receptacles that contain the object (two receptacles in some published games)."""
    lamps: Mapping[str, tuple[str, ...]]
    spots: Mapping[str, str]
    """Receptacle -> position of the agent at this receptacle; neighbouring receptacles can have one position."""
    closed: frozenset[str]
    start: str
    """The agent's position at the start."""
    put: str = ACTIONS["put"]
    """Template of the command that puts a thing down."""


@dataclass(frozen=True, slots=True)
class Fetch:
    thing: str
    source: str


@dataclass(frozen=True, slots=True)
class Treat:
    how: str
    thing: str
    place: str


@dataclass(frozen=True, slots=True)
class PutDown:
    thing: str
    place: str


@dataclass(frozen=True, slots=True)
class SwitchOn:
    lamp: str
    place: str


Stop: TypeAlias = Fetch | Treat | PutDown | SwitchOn


def plan(world: World, kind: str, object_type: str, target_type: str, put: str = ACTIONS["put"]) -> list[str]:
    """Return a shortest plan from the game's start; [] if there is no plan. This resets `world` and plays the plan.

    `put`: the game's template of the command that puts a thing down."""
    world.reset()
    commands = find_commands(survey(world, put), kind, object_type, target_type) or ["look"]
    for position, command in enumerate(commands):
        if command not in world.commands():
            return []
        world.step(command)
        if world.won:
            return commands[: position + 1]
    return []


def find_commands(layout: Layout, kind: str, object_type: str, target_type: str) -> list[str]:
    """Return the shortest commands that reach the goal; [] if the goal is true at the start or unreachable."""
    choices = (_commands(layout, stops) for stops in _choices(layout, kind, object_type, target_type))
    return min(choices, key=len, default=[])


def survey(world: World, put: str) -> Layout:
    facts, name = world.facts, world.name

    def holders(predicate: str) -> dict[str, tuple[str, ...]]:
        inside_of = {}
        for (thing,) in sorted(facts.of(predicate)):
            inside = tuple(sorted(name(place) for _, place in facts.match("inreceptacle", (thing, None))))
            if inside:
                inside_of[name(thing)] = inside
        return inside_of

    unopened = {place for (place,) in facts.of("openable")} - {place for (place,) in facts.of("opened")}
    return Layout(
        things=holders("pickupable"),
        lamps=holders("toggleable"),
        spots={name(place): spot for place, spot in sorted(facts.of("receptacleatlocation"))},
        closed=frozenset(name(place) for place in unopened),
        start=next(iter(facts.of("atlocation")))[1],
        put=put,
    )


def kind_in(name: str) -> str:
    """Map `soapbar 2` to `soapbar`."""
    return name.rpartition(" ")[0]


def _choices(layout: Layout, kind: str, object_type: str, target_type: str) -> Iterator[tuple[Stop, ...]]:
    fetches = [
        Fetch(thing, source)
        for thing, sources in layout.things.items()
        if kind_in(thing) == object_type
        for source in sources
    ]
    if kind == "examine":
        lamps = [
            SwitchOn(lamp, place)
            for lamp, places in layout.lamps.items()
            if kind_in(lamp) == target_type
            for place in places
        ]
        yield from product(fetches, lamps)
        return
    targets = [place for place in layout.spots if kind_in(place) == target_type]
    if kind == "puttwo":
        for target in targets:
            there = {fetch.thing for fetch in fetches if fetch.source == target}
            outside = [fetch for fetch in fetches if fetch.thing not in there]
            for chosen in permutations(outside, max(0, 2 - len(there))):
                if len({fetch.thing for fetch in chosen}) == len(chosen):
                    yield tuple(stop for fetch in chosen for stop in (fetch, PutDown(fetch.thing, target)))
        return
    if kind in TREATED_AT:
        treatments = [place for place in layout.spots if kind_in(place) in TREATED_AT[kind]]
        for fetch, place, target in product(fetches, treatments, targets):
            yield fetch, Treat(kind, fetch.thing, place), PutDown(fetch.thing, target)
        return
    for fetch, target in product(fetches, targets):
        if fetch.source != target:
            yield fetch, PutDown(fetch.thing, target)


def _commands(layout: Layout, stops: tuple[Stop, ...]) -> list[str]:
    commands: list[str] = []
    closed = set(layout.closed)
    here = layout.start

    def go(receptacle: str) -> None:
        nonlocal here
        if layout.spots[receptacle] != here:
            commands.append(f"go to {receptacle}")
            here = layout.spots[receptacle]

    def reach_into(receptacle: str) -> None:
        go(receptacle)
        if receptacle in closed:
            commands.append(f"open {receptacle}")
            closed.remove(receptacle)

    for stop in stops:
        match stop:
            case Fetch(thing, source):
                reach_into(source)
                commands.append(f"take {thing} from {source}")
            case Treat(how, thing, place):
                go(place)
                commands.append(f"{how} {thing} with {place}")
            case PutDown(thing, place):
                reach_into(place)
                commands.append(layout.put.format(object=thing, receptacle=place))
            case SwitchOn(lamp, place):
                go(place)
                commands.append(f"use {lamp}")
    return commands
