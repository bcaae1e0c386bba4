"""Find the milestones of a mission: facts that become true in the simulator in every solution of the mission.

A mission has one or more actions, such as "open the red door". An action has up to three milestones: the agent sees the
object, the agent faces the object, and the action is done. If every route passes a locked door, there are two more: the
agent carries the key, and the door is unlocked. A fact that is true at the start is not a milestone. If the mission
orders its actions ("then", "after you"), the milestones of the second action count only after the first action is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from evalharness.envs.babyai.view import EMPTY, HALF, OWN, SIZE, VECTORS, View
from evalharness.envs.babyai.world import World

Cell = tuple[int, int]


class Status(IntEnum):
    """Status of an action in the mission: waiting for an earlier action, active, or done."""

    WAITING = 0
    ACTIVE = 1
    DONE = 2


def order_actions(instruction: Any, status: Status = Status.ACTIVE) -> Iterator[tuple[Any, Status]]:
    """Yield (action, its status) for the actions of a mission, in the required order."""
    name = type(instruction).__name__
    if name not in ("AndInstr", "BeforeInstr", "AfterInstr"):
        yield instruction, status
        return
    first, second = instruction.instr_a, instruction.instr_b
    first_done, second_done = instruction.a_done == "success", instruction.b_done == "success"
    if name == "AfterInstr":
        first, second, first_done, second_done = second, first, second_done, first_done
    first_status = Status.DONE if status is Status.DONE or first_done else status
    if status is Status.DONE or second_done:
        second_status = Status.DONE
    elif name == "AndInstr" or first_done:
        second_status = status
    else:
        second_status = Status.WAITING
    yield from order_actions(first, first_status)
    yield from order_actions(second, second_status)


@dataclass(frozen=True)
class Milestone:
    """A fact that must become true. `clause`: index of its action among the mission's actions."""

    kind: str
    """`see`, `face` or `do` for an object of the mission; `key` or `unlock` for a locked door on the route to it."""
    clause: int
    text: str
    door: Any = None
    """The locked door, if the kind is `key` or `unlock`."""


def list_actions(world: World) -> list[Any]:
    return [action for action, _ in order_actions(world.simulator.instrs)]


_PLACES = {
    "left": "on your left",
    "right": "on your right",
    "front": "in front of you",
    "behind": "behind you",
}


def _words(description: Any) -> str:
    """Write minigrid's description of an object as in the mission: `the red door`, `a key on your left`."""
    parts = ["a" if len(description.obj_set) > 1 else "the", description.color, description.type or "object"]
    return " ".join(part for part in (*parts, _PLACES.get(description.loc)) if part)


def milestones(world: World) -> list[Milestone]:
    """Return the milestones of a mission that are not true at its start, in the order of its actions."""
    simulator = world.simulator
    listed: list[Milestone] = []
    for number, action in enumerate(list_actions(world)):
        what = _words(action.desc)
        kind = type(action).__name__
        for door in list_locked_doors_before(simulator, action):
            name = f"the {door.color} locked door"
            if not any(milestone.door is door for milestone in listed):
                listed.append(Milestone("key", number, f"hold the key of {name}", door))
                if not (kind == "OpenInstr" and door in action.desc.obj_set):
                    listed.append(Milestone("unlock", number, f"unlock {name}", door))
        listed.append(Milestone("see", number, f"see {what}"))
        if kind != "GoToInstr":
            listed.append(Milestone("face", number, f"face {what}"))
        verb = {"GoToInstr": "go to", "PickupInstr": "pick up", "OpenInstr": "open"}[kind]
        listed.append(Milestone("do", number, f"{verb} {what}"))
    progress = MissionProgress(world, listed)
    return [milestone for number, milestone in enumerate(listed) if number in progress.remaining]


class SubgoalProgress:
    """The indices of the subgoals that were not reached yet. A reached subgoal stays reached."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._open = list(range(total))

    @property
    def rate(self) -> float:
        return (self._total - len(self._open)) / self._total if self._total else 0.0

    @property
    def remaining(self) -> tuple[int, ...]:
        """Return the indices of the subgoals that were not reached yet, as a value for `restore`."""
        return tuple(self._open)

    def restore(self, remaining: Iterable[int]) -> None:
        self._open = list(remaining)


class MissionProgress(SubgoalProgress):
    """The progress through a mission's milestones."""

    def __init__(self, world: World, wanted: Iterable[Milestone]) -> None:
        self.wanted = list(wanted)
        super().__init__(len(self.wanted))
        self._world = world
        self.update(accomplished=False)

    def update(self, *, accomplished: bool) -> tuple[int, ...]:
        """Return the indices of the milestones that have become true. `accomplished`: all actions are done."""
        actions = list(
            order_actions(self._world.simulator.instrs, Status.DONE if accomplished else Status.ACTIVE)
        )
        reached = tuple(
            number
            for number in self._open
            if self._holds(self.wanted[number], *actions[self.wanted[number].clause])
        )
        self._open = [number for number in self._open if number not in reached]
        return reached

    def _holds(self, milestone: Milestone, action: Any, status: Status) -> bool:
        if status is Status.DONE:
            return True
        simulator = self._world.simulator
        if milestone.kind == "unlock":
            return not milestone.door.is_locked
        if milestone.kind == "key":
            held = simulator.carrying
            return not milestone.door.is_locked or (
                held is not None and held.type == "key" and held.color == milestone.door.color
            )
        if status is Status.WAITING:
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
    """Return the cells of all things that fit. The carried thing has no cell, so it is not among them."""
    width = simulator.grid.width
    return [
        (index % width, index // width)
        for index, thing in enumerate(simulator.grid.grid)
        if thing is not None and fits(thing)
    ]


def object_cells(simulator: Any, action: Any) -> list[Cell]:
    wanted = {id(thing) for thing in action.desc.obj_set}
    return cells_of(simulator, lambda thing: id(thing) in wanted)


def things_in_view(simulator: Any, view: View) -> Iterator[Any]:
    """Yield the objects that the agent sees, including walls, but without the object that it carries."""
    grid = simulator.grid
    x0, y0 = (int(at) for at in simulator.agent_pos)
    dx, dy = VECTORS[simulator.agent_dir]
    for index, cell in enumerate(view):
        if cell > EMPTY and index != OWN:
            ahead, right = index // SIZE, index % SIZE - HALF
            x, y = x0 + ahead * dx - right * dy, y0 + ahead * dy + right * dx
            if 0 <= x < grid.width and 0 <= y < grid.height:
                yield grid.get(x, y)


def list_locked_doors_before(simulator: Any, action: Any) -> list[Any]:
    """Return the locked doors that the agent must unlock before it can do an action, in the order of unlocking."""
    cells = object_cells(simulator, action)
    doors_before: list[Any] = []
    _collect(simulator, cells, doors_before, frozenset())
    if type(action).__name__ == "OpenInstr" and all(door.is_locked for door in action.desc.obj_set):
        doors = [door for door in action.desc.obj_set if door not in doors_before]
        if len(action.desc.obj_set) == 1 and doors:
            _collect(simulator, _key_cells(simulator, doors[0].color), doors_before, frozenset(doors))
            doors_before.append(doors[0])
    return doors_before


def _collect(simulator: Any, cells: list[Cell], doors_before: list[Any], pending: frozenset[Any]) -> None:
    locked = [t for t in simulator.grid.grid if t is not None and t.type == "door" and t.is_locked]
    for door in locked:
        if door in doors_before or door in pending:
            continue
        if not _can_touch(simulator, cells, shut=door):
            _collect(simulator, _key_cells(simulator, door.color), doors_before, pending | {door})
            doors_before.append(door)


def _key_cells(simulator: Any, color: str) -> list[Cell]:
    return cells_of(simulator, lambda thing: thing.type == "key" and thing.color == color)


def _can_touch(simulator: Any, cells: list[Cell], *, shut: Any) -> bool:
    """Return whether the agent can get next to one of the cells if `shut` is closed and all other doors are open."""
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
