"""A PDDL world as a picture: stacks of blocks, rooms with balls, or the facts of each object."""

from __future__ import annotations

from collections.abc import Iterable

from evalharness.envs.base import TextEnv
from evalharness.envs.pddl.adapter import PddlTextEnv
from evalharness.envs.picture import HERE, INK, PAPER, SOFT, line, rect, svg, text

Fact = tuple[str, ...]
"""(predicate, argument, ...)"""


def picture(environment: TextEnv) -> str:
    assert isinstance(environment, PddlTextEnv)
    facts = environment.facts
    match environment.domain:
        case "blockworld":
            return _blocks(facts)
        case "gripper":
            return _rooms(facts)
        case _:
            return _objects(facts)


def _blocks(facts: Iterable[Fact]) -> str:
    above = {under: block for predicate, block, under in (f for f in facts if f[0] == "on") if predicate}
    bottoms = sorted(fact[1] for fact in facts if fact[0] == "on-table")
    held = [fact[1] for fact in facts if fact[0] == "holding"]
    stacks = []
    for bottom in bottoms:
        stack = [bottom]
        while stack[-1] in above:
            stack.append(above[stack[-1]])
        stacks.append(stack)
    size, tallest = 34, max([len(stack) for stack in stacks] + [1])
    width, floor = max(len(stacks), 2) * (size + 10) + 10, (tallest + 2) * size
    drawn = [line((0, floor), (width, floor), INK, 2), text(6, 14, "arm:", anchor="start")]
    drawn += _block(held[0], 40, 2, size) if held else [text(36, 14, "empty", anchor="start")]
    for number, stack in enumerate(stacks):
        for level, name in enumerate(stack):
            drawn += _block(name, 10 + number * (size + 10), floor - (level + 1) * size, size)
    return svg(width, floor + 8, drawn)


def _block(name: str, x: float, y: float, size: float) -> list[str]:
    return [rect(x, y, size, size - 2, PAPER, INK, 3), text(x + size / 2, y + size / 2 + 3, name)]


def _rooms(facts: Iterable[Fact]) -> str:
    facts = list(facts)
    rooms = sorted({fact[1] for fact in facts if fact[0] == "room"})
    here = next((fact[1] for fact in facts if fact[0] == "at-robby"), None)
    width, drawn = 150, []
    most = max([sum(f[0] == "at" and f[2] == room for f in facts) for room in rooms] + [1])
    height = 60 + 18 * most
    for number, room in enumerate(rooms):
        x = 8 + number * (width + 8)
        drawn += [rect(x, 8, width, height, PAPER, INK), text(x + width / 2, 24, room, bold=True)]
        if room == here:
            carried = [f"{f[2]}: {f[1]}" for f in facts if f[0] == "carry"]
            free = [f"{f[1]}: free" for f in facts if f[0] == "free"]
            drawn += [rect(x + 6, 30, width - 12, 18, HERE, INK, 4), text(x + width / 2, 43, "robby")]
            drawn.append(text(x + width / 2, height + 22, ", ".join(sorted(carried + free))))
        balls = sorted(f[1] for f in facts if f[0] == "at" and f[2] == room)
        drawn += [text(x + 12, 64 + 18 * i, ball, anchor="start") for i, ball in enumerate(balls)]
    return svg(len(rooms) * (width + 8) + 8, height + 32, drawn)


_LINE = 15
_FIXED = frozenset({"next", "cocktail-part1", "cocktail-part2", "dispenses"})
"""Facts that never change."""


def _objects(facts: Iterable[Fact]) -> str:
    """Draw one line per object with its facts and the other objects in them."""
    of: dict[str, list[str]] = {}
    for predicate, *arguments in sorted(facts):
        if arguments and predicate not in _FIXED:
            of.setdefault(arguments[0], []).append(" ".join([predicate, *arguments[1:]]))
    drawn = []
    for row, (name, said) in enumerate(sorted(of.items())):
        y = _LINE * (row + 1)
        drawn += [line((0, y + 4), (420, y + 4), SOFT), text(6, y, name, anchor="start", bold=True)]
        drawn.append(text(90, y, ", ".join(said), anchor="start", longest=60))
    return svg(430, _LINE * len(of) + 10, drawn)
