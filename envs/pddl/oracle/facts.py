"""Looking things up in a state without decoding it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from evalharness.envs.pddl.engine import GroundedProblem
from evalharness.envs.pddl.syntax import Atom

T = TypeVar("T")


def among(world: GroundedProblem, atoms: list[Atom], read: Callable[[list[Atom]], T]) -> Callable[[int], T]:
    """`read` of those of `atoms` that are true, as a function of the state; each answer is worked out once."""
    pairs = [(world.bit[atom], atom) for atom in sorted(atoms)]
    mask = sum(bit for bit, _ in pairs)
    seen: dict[int, T] = {}

    def lookup(state: int) -> T:
        part = state & mask
        if part not in seen:
            seen[part] = read([atom for bit, atom in pairs if part & bit])
        return seen[part]

    return lookup


def naming(world: GroundedProblem, predicates: set[str], position: int, name: str) -> list[Atom]:
    """The world's atoms of these predicates whose argument at `position` is `name`."""
    return [
        atom
        for atom in world.atoms
        if atom[0] in predicates and len(atom) > position + 1 and atom[position + 1] == name
    ]
