"""Search a grounded world by A*, and read encoded states fast."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from evalharness.envs.pddl.engine import GroundAction, GroundedProblem
from evalharness.envs.pddl.syntax import Atom

K = TypeVar("K")
T = TypeVar("T")

DEAD = 1_000_000
"""A bound this large means that the goal is unreachable."""

Bound = Callable[[int], int]
"""State -> lower bound of the number of remaining actions, or `DEAD`."""


@dataclass(frozen=True)
class ActionPlan:
    actions: tuple[GroundAction, ...]
    expanded: int
    """Number of expanded states."""


def search(
    world: GroundedProblem, bound: Bound, key: Callable[[int], Hashable], *, most: int, weight: int = 1
) -> ActionPlan | None:
    """Return the shortest plan; None if there is no plan, or if `most` states were expanded.

    States with equal `key` count as equal. With a `weight` above 1, the plan may be longer by that factor. Of equal
    states the deeper one is expanded first, then the newer one, so the result is deterministic.
    """
    best: dict[Hashable, int] = {key(world.initial): 0}
    first = bound(world.initial)
    if first >= DEAD:
        return None
    # (estimated length, -depth, -serial, state, key); the path is stored by serial number.
    queue: list[tuple[int, int, int, int, Hashable]] = [
        (weight * first, 0, 0, world.initial, key(world.initial))
    ]
    came: dict[int, tuple[int, GroundAction]] = {}
    serial = 0
    expanded = 0
    while queue and expanded < most:
        _, negative_depth, negative_serial, state, name = heapq.heappop(queue)
        depth = -negative_depth
        if best[name] < depth:
            continue
        if world.solved(state):
            return ActionPlan(_way(came, -negative_serial), expanded)
        expanded += 1
        for action in world.applicable(state):
            after = world.result(state, action)
            after_name = key(after)
            if best.get(after_name, DEAD) <= depth + 1:
                continue
            rest = bound(after)
            if rest >= DEAD:
                continue
            best[after_name] = depth + 1
            serial += 1
            came[serial] = (-negative_serial, action)
            heapq.heappush(queue, (depth + 1 + weight * rest, -depth - 1, -serial, after, after_name))
    return None


def _way(came: dict[int, tuple[int, GroundAction]], serial: int) -> tuple[GroundAction, ...]:
    actions: list[GroundAction] = []
    while serial:
        serial, action = came[serial]
        actions.append(action)
    return tuple(reversed(actions))


def read_true(
    world: GroundedProblem, atoms: list[Atom], read: Callable[[list[Atom]], T]
) -> Callable[[int], T]:
    """Return a function that maps a state to `read(atoms that are true in it)`."""
    return read_bits([(world.bit[atom], atom) for atom in sorted(atoms)], read)


def read_bits(pairs: Sequence[tuple[int, K]], read: Callable[[list[K]], T]) -> Callable[[int], T]:
    """Return a function that maps a state to `read(values of its true bits)`. Its results are cached, as few occur."""
    mask = sum(bit for bit, _ in pairs)
    seen: dict[int, T] = {}

    def lookup(state: int) -> T:
        part = state & mask
        if part not in seen:
            seen[part] = read([each for bit, each in pairs if part & bit])
        return seen[part]

    return lookup


def atoms_naming(world: GroundedProblem, predicates: set[str], position: int, name: str) -> list[Atom]:
    """Return the atoms of these predicates whose argument at `position` is `name`."""
    return [
        atom
        for atom in world.atoms
        if atom[0] in predicates and len(atom) > position + 1 and atom[position + 1] == name
    ]
