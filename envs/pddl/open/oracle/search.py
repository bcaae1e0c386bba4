"""Search for plans with A*, and read parts of a state fast."""

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
"""Value of a bound for a state from which the goal is unreachable."""

Bound = Callable[[int], int]
"""Function: state -> lower bound of the number of remaining actions, or `DEAD`."""


@dataclass(frozen=True)
class ActionPlan:
    actions: tuple[GroundAction, ...]
    expanded: int
    """Number of expanded states."""


def search(
    world: GroundedProblem, bound: Bound, key: Callable[[int], Hashable], *, most: int, weight: int = 1
) -> ActionPlan | None:
    """Return the shortest plan; None if there is no plan, or if `most` states were expanded.

    States with an equal `key` are searched only once. With a `weight` above 1 the search is faster, but the plan may be
    longer by this factor. Of states with equal cost, the deeper one is expanded first, and then the newer one.
    """
    best: dict[Hashable, int] = {key(world.initial): 0}
    first = bound(world.initial)
    if first >= DEAD:
        return None
    # (estimated length of the plan, -depth, -serial number of the node, state, key)
    queue: list[tuple[int, int, int, int, Hashable]] = [
        (weight * first, 0, 0, world.initial, key(world.initial))
    ]
    parents: dict[int, tuple[int, GroundAction]] = {}
    serial = 0
    expanded = 0
    while queue and expanded < most:
        _, negative_depth, negative_serial, state, name = heapq.heappop(queue)
        depth = -negative_depth
        if best[name] < depth:
            continue
        if world.solved(state):
            return ActionPlan(_trace_actions(parents, -negative_serial), expanded)
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
            parents[serial] = (-negative_serial, action)
            heapq.heappush(queue, (depth + 1 + weight * rest, -depth - 1, -serial, after, after_name))
    return None


def _trace_actions(parents: dict[int, tuple[int, GroundAction]], serial: int) -> tuple[GroundAction, ...]:
    actions: list[GroundAction] = []
    while serial:
        serial, action = parents[serial]
        actions.append(action)
    return tuple(reversed(actions))


def read_true(
    world: GroundedProblem, atoms: list[Atom], read: Callable[[list[Atom]], T]
) -> Callable[[int], T]:
    """Return a function of a state that calls `read` with those of `atoms` that are true in the state."""
    return read_bits([(world.bit[atom], atom) for atom in sorted(atoms)], read)


def read_bits(pairs: Sequence[tuple[int, K]], read: Callable[[list[K]], T]) -> Callable[[int], T]:
    """Return a function of a state that calls `read` with the values whose bits are set. Results are cached."""
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
