"""Draw random problems (drafts) of the four domains. The generator checks later whether a draft can be solved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from evalharness.envs.pddl.syntax import Atom


@dataclass(frozen=True)
class Draft:
    """A random problem that may be unsolvable."""

    template: str
    """Name of the goal's kind, from `TEMPLATES`."""
    objects: dict[str, str]
    """Object -> type."""
    initial: frozenset[Atom]
    goal: tuple[Atom, ...]
    walk: int = 0
    """Number of random actions that lead from `initial` to the start of the problem."""

    def text(self, name: str, domain: str) -> str:
        kinds = sorted(set(self.objects.values()))
        listing = [
            " ".join(sorted(thing for thing, kind in self.objects.items() if kind == one))
            + (f" - {one}" if one != "object" else "")
            for one in kinds
        ]
        return (
            f"(define (problem {name})\n  (:domain {domain})\n"
            f"  (:objects\n    {_lines(listing)})\n"
            f"  (:init\n    {_lines(sorted(map(_format_atom, self.initial)))})\n"
            f"  (:goal (and\n    {_lines(sorted(map(_format_atom, self.goal)))})))\n"
        )


def _lines(items: list[str]) -> str:
    return "\n    ".join(items)


def _format_atom(atom: Atom) -> str:
    return f"({' '.join(atom)})"


def _between(low: float, high: float, level: float) -> int:
    return round(low + (high - low) * level)


TEMPLATES = {
    "gripper": ("sort", "gather", "return", "exchange"),
    "blockworld": ("tower", "stacks", "spread", "dig"),
    "barman": ("serve",),
    "tyreworld": ("change", "refit", "stow", "mixed"),
}


def gripper(rng: Random, level: float, template: str) -> Draft:
    """Draw a problem with balls to carry between rooms: two to four rooms, and one or two grippers."""
    rooms = ["rooma", "roomb", "roomc", "roomd"][: rng.choice([2, 3, 3, 4])]
    arms = ["left"] if rng.random() < 0.2 else ["left", "right"]
    balls = [f"ball{number}" for number in range(1, _between(3, 9, level) + rng.randrange(2))]
    place = {ball: rng.choice(rooms) for ball in balls}
    moved = rng.sample(balls, max(2, len(balls) - rng.randrange(3)))
    goal: list[Atom]
    if template == "gather":
        home = rng.choice(rooms)
        goal = [("at", ball, home) for ball in moved if place[ball] != home]
    elif template == "exchange":
        # The balls of each room go to the next room, and those of the last room to the first room.
        onward = dict(zip(rooms, [*rooms[1:], rooms[0]], strict=True))
        goal = [("at", ball, onward[place[ball]]) for ball in moved]
    else:
        goal = [("at", ball, rng.choice([room for room in rooms if room != place[ball]])) for ball in moved]
    start = rng.choice(rooms)
    if template == "return":
        goal.append(("at-robby", rng.choice([room for room in rooms if room != start])))
    initial: list[Atom] = [("at-robby", start)]
    initial += [("room", room) for room in rooms]
    initial += [(fact, arm) for arm in arms for fact in ("gripper", "free")]
    initial += [("ball", ball) for ball in balls] + [("at", ball, room) for ball, room in place.items()]
    return Draft(template, dict.fromkeys([*rooms, *balls, *arms], "object"), frozenset(initial), tuple(goal))


def blockworld(rng: Random, level: float, template: str) -> Draft:
    """Draw towers of blocks. The goal is one tower, parts of towers, towers on the table, or towers with a free top."""
    blocks = [f"b{number}" for number in range(1, _between(4, 8, level) + 1)]
    initial: list[Atom] = [("arm-empty",)]
    for tower in _towers(rng, blocks):
        initial += [("on-table", tower[0]), ("clear", tower[-1])]
        initial += [("on", upper, lower) for lower, upper in pairwise(tower)]
    wanted = _towers(rng, blocks)
    if template == "tower":
        wanted = [rng.sample(blocks, len(blocks))]
    goal: list[Atom] = [("on", upper, lower) for tower in wanted for lower, upper in pairwise(tower)]
    if template == "stacks":
        goal = rng.sample(goal, max(1, len(goal) - rng.randrange(3))) if goal else []
    elif template == "spread":
        goal += [("on-table", tower[0]) for tower in wanted]
    elif template == "dig":
        goal += [("clear", tower[-1]) for tower in wanted if len(tower) > 1]
    fresh = tuple(atom for atom in goal if atom not in initial)
    return Draft(template, dict.fromkeys(blocks, "object"), frozenset(initial), fresh)


def _towers(rng: Random, blocks: list[str]) -> list[list[str]]:
    towers: list[list[str]] = []
    for block in rng.sample(blocks, len(blocks)):
        if towers and rng.random() < 0.7:
            rng.choice(towers).append(block)
        else:
            towers.append([block])
    return towers


def barman(rng: Random, level: float, template: str) -> Draft:
    """Draw drinks to serve. Some random actions come first, so that glasses may be used or held at the start."""
    shots = [f"shot{number}" for number in range(1, rng.randrange(3, 7) + 1)]
    ingredients = [f"ingredient{number}" for number in range(1, rng.randrange(2, 5) + 1)]
    cocktails = [f"cocktail{number}" for number in range(1, rng.randrange(2, 6) + 1)]
    dispensers = [f"dispenser{number}" for number in range(1, len(ingredients) + 1)]
    mixed = _between(0, 2, min(1.0, level + rng.uniform(-0.3, 0.3)))
    plain = rng.randrange(0 if mixed else 2, 3 if mixed else 4)
    # `mixed` can be -1 for an easy problem. Then the draft may have no goal, and the generator rejects it.
    served = rng.sample(shots, max(0, min(len(shots), mixed + plain)))
    drinks = [rng.choice(cocktails) for _ in range(mixed)]
    if mixed == 2 and rng.random() < 0.2:
        drinks[1] = drinks[0]
    drinks += [rng.choice(ingredients) for _ in served[mixed:]]
    vessels = ["shaker1", *shots]
    initial: list[Atom] = [(fact, vessel) for vessel in vessels for fact in ("ontable", "clean", "empty")]
    initial += [("handempty", "left"), ("handempty", "right")]
    initial += [("dispenses", *pair) for pair in zip(dispensers, ingredients, strict=True)]
    initial += [("shaker-empty-level", "shaker1", "l0"), ("shaker-level", "shaker1", "l0")]
    initial += [("next", "l0", "l1"), ("next", "l1", "l2")]
    for cocktail in cocktails:
        first, second = rng.sample(ingredients, 2)
        initial += [("cocktail-part1", cocktail, first), ("cocktail-part2", cocktail, second)]
    objects = {
        **dict.fromkeys(["shaker1"], "shaker"),
        **dict.fromkeys(["left", "right"], "hand"),
        **dict.fromkeys(shots, "shot"),
        **dict.fromkeys(ingredients, "ingredient"),
        **dict.fromkeys(cocktails, "cocktail"),
        **dict.fromkeys(dispensers, "dispenser"),
        **dict.fromkeys(["l0", "l1", "l2"], "level"),
    }
    goal = tuple(("contains", shot, drink) for shot, drink in zip(served, drinks, strict=False))
    return Draft(
        f"{template} {mixed} mixed", objects, frozenset(initial), goal, walk=rng.choice([0, 2, 5, 9])
    )


def tyreworld(rng: Random, level: float, template: str) -> Draft:
    """Draw wheels to change, inflate or put away. Some random actions come first, so some work may be done already."""
    wheels = range(1, _between(1, 3, level) + rng.randrange(2) + 1)
    objects = {"boot": "container", "wrench": "tool", "jack": "tool", "pump": "tool"}
    initial: list[Atom] = [("unlocked", "boot"), ("closed", "boot")]
    initial += [("in", tool, "boot") for tool in ("wrench", "jack", "pump")]
    for number in wheels:
        spare, worn, hub, nut = f"r{number}", f"w{number}", f"the-hub{number}", f"nuts{number}"
        objects |= {spare: "wheel", worn: "wheel", hub: "hub", nut: "nut"}
        initial += [("in", spare, "boot"), ("intact", spare), ("not-inflated", spare)]
        initial += [("on", worn, hub), ("on-ground", hub), ("tight", nut, hub), ("fastened", hub)]
    goal: list[Atom] = []
    for number in rng.sample(list(wheels), min(len(wheels), _between(1, 2, level) + rng.randrange(2))):
        spare, worn, hub, nut = f"r{number}", f"w{number}", f"the-hub{number}", f"nuts{number}"
        if template == "change":
            goal += [("on", spare, hub), ("inflated", spare)]
        elif template == "refit":
            goal += [("on", spare, hub), ("tight", nut, hub)]
        elif template == "stow":
            goal += [("in", worn, "boot"), ("in", nut, "boot")]
        else:
            goal += rng.sample(
                [("on", spare, hub), ("inflated", spare), ("in", worn, "boot"), ("on-ground", hub)], 3
            )
    if template == "stow" or rng.random() < 0.3:
        goal += [("in", rng.choice(["wrench", "jack", "pump"]), "boot")]
    if rng.random() < 0.3:
        goal += [("closed", "boot")]
    return Draft(template, objects, frozenset(initial), tuple(goal), walk=rng.choice([0, 3, 6, 12]))


DRAFTS: dict[str, Callable[[Random, float, str], Draft]] = {
    "gripper": gripper,
    "blockworld": blockworld,
    "barman": barman,
    "tyreworld": tyreworld,
}
"""Domain -> function (random generator, level from 0 for easy to 1 for hard, template) that draws a problem."""
