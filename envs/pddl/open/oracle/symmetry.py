"""Find interchangeable objects. The search treats two states as one if they differ only in a swap of such objects."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import permutations

from evalharness.envs.pddl.engine import GroundedProblem
from evalharness.envs.pddl.open.oracle.search import read_bits
from evalharness.envs.pddl.syntax import Atom

MOST_PERMUTED = 3
"""Largest number of interchangeable objects of which all orders are tried; for more objects this would be slow."""


def interchangeable(world: GroundedProblem) -> list[tuple[str, ...]]:
    """Return groups of objects; a swap of two objects of a group changes neither the goal nor a static fact."""
    fluent = 0
    for action in world.actions:
        fluent |= action.adds | action.deletes
    fixed = set(world.decode(world.initial & ~fluent))
    goal = set(world.goal_atoms)

    def alike(one: str, other: str) -> bool:
        swap = {one: other, other: one}
        if world.objects[one] != world.objects[other] or {one, other} & world.constants:
            return False
        return all({_rename(atom, swap) for atom in facts} == facts for facts in (fixed, goal))

    classes: list[list[str]] = []
    for name in sorted(world.objects):
        home = next((group for group in classes if alike(group[0], name)), None)
        if home is None:
            classes.append([name])
        else:
            home.append(name)
    return [tuple(group) for group in classes if len(group) > 1]


def canonical_key(world: GroundedProblem) -> Callable[[int], Hashable]:
    """Return a function of a state. If it returns equal values for two states, they differ only in a swap of
    interchangeable objects. The reverse is usually true, but not always, because this would be slow to compute."""
    classes = interchangeable(world)
    sorted_classes: list[tuple[str, ...]] = []
    permuted: tuple[str, ...] = ()
    # Sort the objects of each large group. Try all orders of one small group whose objects occur in atoms with these.
    for group in sorted(classes, key=len, reverse=True):
        if any(_share(world, group, chosen) for chosen in [*sorted_classes, group]):
            if not permuted and len(group) <= MOST_PERMUTED and not _shares_itself(world, group):
                permuted = group
        else:
            sorted_classes.append(group)
    if not classes:
        return lambda state: state
    orders = [dict(zip(permuted, order, strict=True)) for order in permutations(permuted)] or [{}]
    numbers: dict[Atom, int] = {}
    views = [_View(world, sorted_classes, order, numbers) for order in orders]
    if len(views) == 1:
        return views[0]
    return lambda state: min(view(state) for view in views)


class _View:
    """A function: state -> nested tuples of integers, the same for every order of objects in the sorted groups."""

    def __init__(
        self,
        world: GroundedProblem,
        classes: list[tuple[str, ...]],
        renaming: dict[str, str],
        numbers: dict[Atom, int],
    ) -> None:
        """`classes`: the sorted groups. `renaming`: one order of the permuted group. `numbers`: atom -> bit, shared."""
        members = {name for group in classes for name in group}

        def number(atom: Atom) -> int:
            return 1 << numbers.setdefault(atom, len(numbers))

        rest = [(bit, atom) for atom, bit in world.bit.items() if not members.intersection(atom[1:])]
        self._rest = read_bits([(bit, number(_rename(atom, renaming))) for bit, atom in rest], sum)
        self._classes: list[list[Callable[[int], int]]] = []
        for group in classes:
            parts = []
            for name in group:
                pairs = []
                for atom, bit in world.bit.items():
                    if name in atom[1:]:
                        pairs.append((bit, number(_rename(atom, {**renaming, name: "*" + group[0]}))))
                parts.append(read_bits(pairs, sum))
            self._classes.append(parts)

    def __call__(self, state: int) -> tuple[int, tuple[tuple[int, ...], ...]]:
        return self._rest(state), tuple(
            tuple(sorted([part(state) for part in parts])) for parts in self._classes
        )


def _rename(atom: Atom, names: dict[str, str]) -> Atom:
    return (atom[0], *(names.get(name, name) for name in atom[1:]))


def _shares_itself(world: GroundedProblem, group: tuple[str, ...]) -> bool:
    return any(len(set(group).intersection(atom[1:])) > 1 for atom in world.atoms)


def _share(world: GroundedProblem, group: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether an atom contains objects of both groups; for one group, whether it contains two of its objects."""
    if group == other:
        return _shares_itself(world, group)
    return any(
        set(group).intersection(atom[1:]) and set(other).intersection(atom[1:]) for atom in world.atoms
    )
