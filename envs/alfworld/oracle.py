"""A shortest errand that solves a task, from full knowledge of where everything is.

Every task is a few stops (fetch, treat, put down, switch on). All choices of objects, sources and places are
few enough to write out; the shortest is played through on a world of its own before it is given out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product
from typing import TypeAlias

from envs.alfworld.facts import FactBase
from envs.alfworld.naming import kind_of
from envs.alfworld.world import World

TREATED_AT = {"clean": ("sinkbasin", "sink"), "heat": ("microwave",), "cool": ("fridge",)}
"""Treatment -> the kinds of receptacle that give it."""


@dataclass(frozen=True, slots=True)
class Fetch:
    object: str
    source: str


@dataclass(frozen=True, slots=True)
class Treat:
    how: str
    object: str
    place: str


@dataclass(frozen=True, slots=True)
class PutDown:
    object: str
    place: str


@dataclass(frozen=True, slots=True)
class SwitchOn:
    lamp: str
    place: str


Stop: TypeAlias = Fetch | Treat | PutDown | SwitchOn


def plan(world: World, kind: str, object_type: str, target_type: str) -> list[str]:
    """Commands from the state after `reset()` to the goal, [] when no errand reaches it. Plays on `world`."""
    world.reset()
    best: list[str] | None = None
    for errand in _errands(world.facts, kind, object_type, target_type):
        commands = _commands(world, errand)
        if best is None or len(commands) < len(best):
            best = commands
    return _played(world, best or ["look"])


def _played(world: World, commands: list[str]) -> list[str]:
    """As much of the commands as it takes to win, or [] when all of them do not."""
    world.reset()
    for position, command in enumerate(commands):
        if command not in world.commands():
            return []
        world.step(command)
        if world.won:
            return commands[: position + 1]
    return []


def _errands(facts: FactBase, kind: str, object_type: str, target_type: str) -> Iterator[tuple[Stop, ...]]:
    fetches = [
        Fetch(thing, source)
        for thing in _of_kind(facts, "objecttype", object_type)
        if facts.holds("pickupable", (thing,))
        for source in _containers(facts, thing)
    ]
    if kind == "examine":
        lamps = [
            SwitchOn(lamp, place)
            for lamp in _of_kind(facts, "objecttype", target_type)
            if facts.holds("toggleable", (lamp,))
            for place in _containers(facts, lamp)
        ]
        yield from product(fetches, lamps)
        return
    places = _of_kind(facts, "receptacletype", target_type)
    if kind == "puttwo":
        for place in places:
            there = {fetch.object for fetch in fetches if fetch.source == place}
            outside = [fetch for fetch in fetches if fetch.object not in there]
            for chosen in permutations(outside, max(0, 2 - len(there))):
                if len({fetch.object for fetch in chosen}) == len(chosen):
                    yield tuple(stop for fetch in chosen for stop in (fetch, PutDown(fetch.object, place)))
        return
    appliances = TREATED_AT.get(kind, ())
    treatments = [place for name in appliances for place in _of_kind(facts, "receptacletype", name)]
    for fetch, place in product(fetches, places):
        if kind in TREATED_AT:
            for treated_at in treatments:
                yield fetch, Treat(kind, fetch.object, treated_at), PutDown(fetch.object, place)
        elif fetch.source != place:
            yield fetch, PutDown(fetch.object, place)


def _of_kind(facts: FactBase, predicate: str, kind: str) -> list[str]:
    return sorted(thing for thing, _ in facts.of(predicate) if kind_of(thing) == kind)


def _containers(facts: FactBase, thing: str) -> list[str]:
    return sorted(place for _, place in facts.match("inreceptacle", (thing, None)))


def _commands(world: World, errand: tuple[Stop, ...]) -> list[str]:
    facts = world.facts
    where = next(iter(facts.of("atlocation")))[1]
    opened = {receptacle for (receptacle,) in facts.of("opened")}
    commands: list[str] = []

    def go(receptacle: str) -> None:
        nonlocal where
        location = facts.match("receptacleatlocation", (receptacle, None))[0][1]
        if location != where:
            commands.append(f"go to {world.name(receptacle)}")
            where = location

    def reach_into(receptacle: str) -> None:
        go(receptacle)
        if facts.holds("openable", (receptacle,)) and receptacle not in opened:
            commands.append(f"open {world.name(receptacle)}")
            opened.add(receptacle)

    for stop in errand:
        match stop:
            case Fetch(thing, source):
                reach_into(source)
                commands.append(f"take {world.name(thing)} from {world.name(source)}")
            case Treat(how, thing, place):
                go(place)
                commands.append(f"{how} {world.name(thing)} with {world.name(place)}")
            case PutDown(thing, place):
                reach_into(place)
                commands.append(f"put {world.name(thing)} in/on {world.name(place)}")
            case SwitchOn(lamp, place):
                go(place)
                commands.append(f"use {world.name(lamp)}")
    return commands
