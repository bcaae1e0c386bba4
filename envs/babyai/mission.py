"""Milestones of a mission, each a fact of the simulator that every way of accomplishing the mission passes.

For each instruction of the mission: its object is in view, the agent faces it, and what is asked is done. Where every
way leads through a locked door: the agent holds its key, the door is unlocked. What holds at the start is no milestone,
and an instruction counts only when its turn has come ("then", "after you").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from evalharness.envs.babyai.view import EMPTY, HALF, OWN, SIZE, VECTORS, View
from evalharness.envs.babyai.world import World

Cell = tuple[int, int]


class Standing(IntEnum):
    """Where an instruction stands in the order that the mission prescribes."""

    WAITING = 0
    ACTIVE = 1
    DONE = 2


def turns(instruction: Any, turn: Standing = Standing.ACTIVE) -> Iterator[tuple[Any, Standing]]:
    """The single actions of a mission in the order in which they are due, each with its turn."""
    name = type(instruction).__name__
    if name not in ("AndInstr", "BeforeInstr", "AfterInstr"):
        yield instruction, turn
        return
    first, second = instruction.instr_a, instruction.instr_b
    first_done, second_done = instruction.a_done == "success", instruction.b_done == "success"
    if name == "AfterInstr":
        first, second, first_done, second_done = second, first, second_done, first_done
    first_turn = Standing.DONE if turn is Standing.DONE or first_done else turn
    if turn is Standing.DONE or second_done:
        second_turn = Standing.DONE
    elif name == "AndInstr" or first_done:
        second_turn = turn
    else:
        second_turn = Standing.WAITING
    yield from turns(first, first_turn)
    yield from turns(second, second_turn)


@dataclass(frozen=True)
class Milestone:
    """One fact to be reached. `clause` is the number of the action it belongs to, in due order."""

    kind: str
    """`see`, `face`, `do`; `key` or `unlock` for a locked door on the way."""
    clause: int
    text: str
    door: Any = None
    """The locked door of `key` and `unlock`."""


def due_actions(world: World) -> list[Any]:
    """The single actions of the mission, in the order in which they are due."""
    return [action for action, _ in turns(world.simulator.instrs)]


_PLACES = {
    "left": "on your left",
    "right": "on your right",
    "front": "in front of you",
    "behind": "behind you",
}


def _words(description: Any) -> str:
    """`the red door`, `a key on your left`: the words of the mission."""
    parts = ["a" if len(description.obj_set) > 1 else "the", description.color, description.type or "object"]
    return " ".join(part for part in (*parts, _PLACES.get(description.loc)) if part)


def milestones(world: World) -> list[Milestone]:
    """The milestones of a mission at its start, in the order in which they are due."""
    simulator = world.simulator
    found: list[Milestone] = []
    for number, action in enumerate(due_actions(world)):
        what = _words(action.desc)
        kind = type(action).__name__
        for door in locked_doors_before(simulator, action):
            name = f"the {door.color} locked door"
            if not any(milestone.door is door for milestone in found):
                found.append(Milestone("key", number, f"hold the key of {name}", door))
                if not (kind == "OpenInstr" and door in action.desc.obj_set):
                    found.append(Milestone("unlock", number, f"unlock {name}", door))
        found.append(Milestone("see", number, f"see {what}"))
        if kind != "GoToInstr":
            found.append(Milestone("face", number, f"face {what}"))
        verb = {"GoToInstr": "go to", "PickupInstr": "pick up", "OpenInstr": "open"}[kind]
        found.append(Milestone("do", number, f"{verb} {what}"))
    progress = MissionProgress(world, found)
    return [milestone for number, milestone in enumerate(found) if number in progress.remaining]


class SubgoalProgress:
    """Which of a task's subgoals are open, by number; once reached, they stay so."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._open = list(range(total))

    @property
    def rate(self) -> float:
        return (self._total - len(self._open)) / self._total if self._total else 0.0

    @property
    def remaining(self) -> tuple[int, ...]:
        """In order; hashable."""
        return tuple(self._open)

    def restore(self, remaining: Iterable[int]) -> None:
        """Go back to a value of `remaining`."""
        self._open = list(remaining)


class MissionProgress(SubgoalProgress):
    """The milestones of a mission in play."""

    def __init__(self, world: World, wanted: Iterable[Milestone]) -> None:
        self.wanted = list(wanted)
        super().__init__(len(self.wanted))
        self._world = world
        self.update(accomplished=False)

    def update(self, *, accomplished: bool) -> tuple[int, ...]:
        """Look at the world again; returns the milestones reached since, in order."""
        actions = list(
            turns(self._world.simulator.instrs, Standing.DONE if accomplished else Standing.ACTIVE)
        )
        reached = tuple(
            number
            for number in self._open
            if self._holds(self.wanted[number], *actions[self.wanted[number].clause])
        )
        self._open = [number for number in self._open if number not in reached]
        return reached

    def _holds(self, milestone: Milestone, action: Any, turn: Standing) -> bool:
        if turn is Standing.DONE:
            return True
        simulator = self._world.simulator
        if milestone.kind == "unlock":
            return not milestone.door.is_locked
        if milestone.kind == "key":
            held = simulator.carrying
            return not milestone.door.is_locked or (
                held is not None and held.type == "key" and held.color == milestone.door.color
            )
        if turn is Standing.WAITING:
            return False
        things: Iterable[Any]
        if milestone.kind == "see":
            things = things_in_view(simulator, self._world.view)
        elif milestone.kind == "face":
            things = [simulator.grid.get(*simulator.front_pos)]
        else:
            return False
        return any(thing is wanted for thing in things for wanted in action.desc.obj_set)


def cells_of(simulator: Any, fits: Callable[[Any], bool]) -> list[Cell]:
    """Where the things lie that fit (one that is carried lies nowhere)."""
    width = simulator.grid.width
    return [
        (index % width, index // width)
        for index, thing in enumerate(simulator.grid.grid)
        if thing is not None and fits(thing)
    ]


def object_cells(simulator: Any, action: Any) -> list[Cell]:
    """Where the objects lie that an action is about."""
    wanted = {id(thing) for thing in action.desc.obj_set}
    return cells_of(simulator, lambda thing: id(thing) in wanted)


def things_in_view(simulator: Any, view: View) -> Iterator[Any]:
    """What the agent sees, without what it carries. Walls, too: to minigrid they are grey objects."""
    grid = simulator.grid
    x0, y0 = (int(at) for at in simulator.agent_pos)
    dx, dy = VECTORS[simulator.agent_dir]
    for index, cell in enumerate(view):
        if cell > EMPTY and index != OWN:
            ahead, right = index // SIZE, index % SIZE - HALF
            x, y = x0 + ahead * dx - right * dy, y0 + ahead * dy + right * dx
            if 0 <= x < grid.width and 0 <= y < grid.height:
                yield grid.get(x, y)


def locked_doors_before(simulator: Any, action: Any) -> list[Any]:
    """Locked doors that every way of carrying out an action unlocks, those that come first first."""
    cells = object_cells(simulator, action)
    found: list[Any] = []
    _collect(simulator, cells, found, frozenset())
    if type(action).__name__ == "OpenInstr" and all(door.is_locked for door in action.desc.obj_set):
        doors = [door for door in action.desc.obj_set if door not in found]
        if len(action.desc.obj_set) == 1 and doors:
            _collect(simulator, _key_cells(simulator, doors[0].color), found, frozenset(doors))
            found.append(doors[0])
    return found


def _collect(simulator: Any, cells: list[Cell], found: list[Any], asked: frozenset[Any]) -> None:
    locked = [t for t in simulator.grid.grid if t is not None and t.type == "door" and t.is_locked]
    for door in locked:
        if door in found or door in asked:
            continue
        if not _can_touch(simulator, cells, shut=door):
            _collect(simulator, _key_cells(simulator, door.color), found, asked | {door})
            found.append(door)


def _key_cells(simulator: Any, color: str) -> list[Cell]:
    return cells_of(simulator, lambda thing: thing.type == "key" and thing.color == color)


def _can_touch(simulator: Any, cells: list[Cell], *, shut: Any) -> bool:
    """Whether some of the cells can be stood beside when every door but `shut` is open and objects can be moved."""
    grid = simulator.grid
    targets = set(cells)
    x, y = simulator.agent_pos
    start = (int(x), int(y))
    queue, seen = [start], {start}
    for x, y in queue:
        for step in ((x + 1, y), (x, y + 1), (x - 1, y), (x, y - 1)):
            if step in targets:
                return True
            if step in seen or not (0 <= step[0] < grid.width and 0 <= step[1] < grid.height):
                continue
            thing = grid.get(*step)
            if thing is shut or (thing is not None and thing.type == "wall"):
                continue
            seen.add(step)
            queue.append(step)
    return False
