"""Simulate a STRIPS problem. A state is an integer with one bit for each atom, so that an action is two operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from evalharness.envs.pddl.syntax import Atom, Domain, Operator, Problem
from evalharness.envs.pddl_text import PddlError

MOST_CANDIDATES = 200_000
"""Maximum number of ground actions of a problem; the largest published problem has fewer than 2,000."""


class GroundAction(NamedTuple):
    name: str
    arguments: tuple[str, ...]
    needs: int
    adds: int
    deletes: int

    def __str__(self) -> str:
        return " ".join((self.name, *self.arguments))


class GroundedProblem:
    """A problem with all possible actions. It is immutable: its methods get a state and return a state.

    Atoms and actions that cannot be reached even without deletions are left out. As in pddlgym, the arguments of an
    action are different objects, and an atom that an action both deletes and adds becomes true.

    >>> world = GroundedProblem(domain, problem)
    >>> [str(action) for action in world.applicable(world.initial)]
    ['unstack b2 b3']
    """

    def __init__(self, domain: Domain, problem: Problem) -> None:
        if problem.domain != domain.name:
            raise PddlError(f"the problem is of domain {problem.domain}, not {domain.name}")
        self.objects: dict[str, str] = {**domain.constants, **problem.objects}
        self.constants = frozenset(domain.constants)
        self.operator_names = frozenset(operator.name for operator in domain.operators)
        self.arity = {operator.name: len(operator.parameters) for operator in domain.operators}
        reached, reachable = _reach(domain, self.objects, problem.initial)
        self.atoms: tuple[Atom, ...] = tuple(sorted(reached | set(problem.goal)))
        """Every atom that can become true, and the atoms of the goal. The index of an atom is the number of its bit."""
        self.bit: dict[Atom, int] = {atom: 1 << position for position, atom in enumerate(self.atoms)}
        self.initial = self.encode(problem.initial)
        self.goal_bits: tuple[int, ...] = tuple(self.bit[atom] for atom in problem.goal)
        self.goal = self.encode(problem.goal)
        self.goal_atoms = problem.goal
        # Leave out deletions of atoms that can never become true, because such atoms have no bit.
        self.actions: tuple[GroundAction, ...] = tuple(
            GroundAction(
                name, arguments, self.encode(needs), self.encode(adds), self.encode(reached & set(deletes))
            )
            for name, arguments, needs, adds, deletes in sorted(reachable)
        )
        self._index = {(action.name, action.arguments): action for action in self.actions}
        self._by_need = [(action.needs, action) for action in self.actions]
        self._needs_of: dict[str, list[int]] = {name: [] for name in sorted(self.operator_names)}
        for action in self.actions:
            self._needs_of[action.name].append(action.needs)

    def encode(self, atoms: Iterable[Atom]) -> int:
        state = 0
        for atom in atoms:
            state |= self.bit[atom]
        return state

    def decode(self, state: int) -> frozenset[Atom]:
        return frozenset(atom for atom, bit in self.bit.items() if state & bit)

    def applicable(self, state: int) -> list[GroundAction]:
        """Return every action whose preconditions are true, sorted by name and arguments."""
        return [action for needs, action in self._by_need if state & needs == needs]

    def has_applicable(self, state: int, name: str) -> bool:
        return any(state & needs == needs for needs in self._needs_of[name])

    def find(self, name: str, arguments: tuple[str, ...]) -> GroundAction | None:
        """Return the action with these arguments; None if no state allows it."""
        return self._index.get((name, arguments))

    def allows(self, state: int, action: GroundAction) -> bool:
        return state & action.needs == action.needs

    def result(self, state: int, action: GroundAction) -> int:
        """Return the state after an action whose preconditions are true."""
        return state & ~action.deletes | action.adds

    def count_satisfied(self, state: int) -> int:
        return (state & self.goal).bit_count()

    def solved(self, state: int) -> bool:
        return state & self.goal == self.goal


_Candidate = tuple[str, tuple[str, ...], tuple[Atom, ...], tuple[Atom, ...], tuple[Atom, ...]]


def _reach(
    domain: Domain, objects: Mapping[str, str], initial: frozenset[Atom]
) -> tuple[set[Atom], list[_Candidate]]:
    """Return the atoms that can become true from `initial`, and the possible actions, if no action deletes an atom."""
    fluents = {atom[0] for operator in domain.operators for atom in (*operator.add, *operator.delete)}
    waiting: list[_Candidate] = []
    for operator in domain.operators:
        for candidate in _groundings(operator, domain, objects, initial, fluents):
            waiting.append(candidate)
            if len(waiting) > MOST_CANDIDATES:
                raise PddlError(
                    f"more than {MOST_CANDIDATES} ground actions; this engine is for small worlds"
                )
    reached = set(initial)
    reachable: list[_Candidate] = []
    while True:
        later: list[_Candidate] = []
        for candidate in waiting:
            if reached.issuperset(candidate[2]):
                reachable.append(candidate)
            else:
                later.append(candidate)
        if len(later) == len(waiting):
            return reached, reachable
        for _, _, _, added, _ in reachable:
            reached.update(added)
        waiting = later


def _groundings(
    operator: Operator,
    domain: Domain,
    objects: Mapping[str, str],
    initial: frozenset[Atom],
    fluents: set[str],
) -> Iterator[_Candidate]:
    """Yield the actions whose arguments have the right types, are different, and fulfil all static preconditions."""
    # A binding is a tuple: first the constants, then a value for each parameter. Atoms name its positions.
    fixed = tuple(domain.constants)
    first = len(fixed)
    names = [*fixed, *(variable for variable, _ in operator.parameters)]

    def places(atoms: Iterable[Atom]) -> list[_Places]:
        return [(atom[0], [names.index(name) for name in atom[1:]]) for atom in atoms]

    static = places(atom for atom in operator.precondition if atom[0] not in fluents)
    bindings = [fixed]
    for place, (_, kind) in enumerate(operator.parameters, first):
        choices = sorted(name for name, has in objects.items() if domain.is_a(has, kind))
        bindings = [
            (*binding, name) for binding in bindings for name in choices if name not in binding[first:]
        ]
        if len(bindings) > MOST_CANDIDATES:
            raise PddlError(f"more than {MOST_CANDIDATES} ground actions; this engine is for small worlds")
        # Check a static precondition as soon as its last variable has a value.
        for atom in static:
            if max(atom[1], default=-1) == place:
                bindings = [binding for binding in bindings if _ground(atom, binding) in initial]
    for atom in static:
        if max(atom[1], default=-1) < first and _ground(atom, fixed) not in initial:
            return
    parts = [places(atoms) for atoms in (operator.precondition, operator.add, operator.delete)]
    for binding in bindings:
        needs, adds, deletes = [tuple([_ground(atom, binding) for atom in part]) for part in parts]
        yield operator.name, binding[first:], needs, adds, deletes


_Places = tuple[str, list[int]]


def _ground(atom: _Places, binding: tuple[str, ...]) -> Atom:
    predicate, where = atom
    return (predicate, *[binding[place] for place in where])
