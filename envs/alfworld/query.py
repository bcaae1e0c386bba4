"""Which bindings of its free variables make a PDDL condition true: a small conjunctive query engine.

Each conjunction of a condition's normal form is ordered once, so that every look-up finds as much bound as
possible. The order decides the time, not the answer: all applicable actions of a household take about 0.3 ms,
where grounding every action beforehand, as a planner does, takes 200 ms a game.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from evalharness.envs.alfworld.facts import FactBase
from evalharness.envs.alfworld.normal import Conjunct, Literal, Never, normal_form, variables_of
from evalharness.envs.alfworld.pddl import Atom, Condition, Variable
from evalharness.envs.base import InvalidTaskError

Binding = dict[str, str]
Step = Callable[[FactBase, Binding], Iterator[None]]


class Query:
    """A condition compiled for the worlds whose `members` (type -> names of that type) are given."""

    def __init__(
        self,
        condition: Condition,
        *,
        free: Sequence[Variable] = (),
        bound: Sequence[Variable] = (),
        members: Mapping[str, Sequence[str]],
        facts: FactBase,
    ) -> None:
        """`facts` only guide the order of look-ups; `bound` are the variables that every question will bind."""
        self._free = tuple(variable.name for variable in free)
        self._members = members
        self._facts = facts
        types = {variable.name: variable.type for variable in (*free, *bound)}
        known = frozenset(variable.name for variable in bound)
        self._alternatives: list[tuple[Step, ...]] = []
        for conjunction in normal_form(condition, True, {}, types):
            mentioned = {name for part in conjunction for name in variables_of(part)}
            wanted = [name for name in types if name in mentioned or name in self._free]
            if all(members.get(types[name]) for name in wanted):
                self._alternatives.append(self._order(conjunction, wanted, known, types))

    def solutions(self, facts: FactBase, binding: Mapping[str, str] | None = None) -> list[tuple[str, ...]]:
        """The values of the free variables, each combination once."""
        found: dict[tuple[str, ...], None] = {}
        for steps in self._alternatives:
            values: Binding = dict(binding or {})
            for _ in _run(steps, 0, facts, values):
                found[tuple(values[name] for name in self._free)] = None
        return list(found)

    def holds(self, facts: FactBase, binding: Mapping[str, str] | None = None) -> bool:
        for steps in self._alternatives:
            for _ in _run(steps, 0, facts, dict(binding or {})):
                return True
        return False

    def _order(
        self,
        conjunction: Sequence[Conjunct],
        wanted: Sequence[str],
        known: frozenset[str],
        types: Mapping[str, str],
    ) -> tuple[Step, ...]:
        steps: list[Step] = []
        bound = set(known)
        waiting = list(conjunction)
        while waiting:
            costs = [(self._cost(part, bound), position) for position, part in enumerate(waiting)]
            cost, position = min(costs)
            if cost == _IMPOSSIBLE:
                # Only tests are left, and they mention a variable that no positive literal binds.
                name = next(name for name in wanted if name not in bound)
                steps.append(_enumerate(name, self._members[types[name]]))
                bound.add(name)
                continue
            part = waiting.pop(position)
            steps.append(self._step(part, bound, types))
            if isinstance(part, Literal):
                bound.update(variables_of(part))
        for name in wanted:
            if name not in bound:
                steps.append(_enumerate(name, self._members[types[name]]))
                bound.add(name)
        return tuple(steps)

    def _cost(self, part: Conjunct, bound: set[str]) -> float:
        """Expected number of matches; tests come first, but only once everything they mention is bound."""
        if variables_of(part) <= bound:
            return 0.0
        if isinstance(part, Never) or not part.positive or part.atom.predicate == "=":
            return _IMPOSSIBLE
        expected = float(self._facts.count(part.atom.predicate))
        for position, term in enumerate(part.atom.terms):
            if not term.startswith("?") or term[1:] in bound:
                expected /= max(1, self._facts.distinct(part.atom.predicate, position))
        return 1.0 + expected

    def _step(self, part: Conjunct, bound: set[str], types: Mapping[str, str]) -> Step:
        if isinstance(part, Never):
            outer = [Variable(name, types[name]) for name in sorted(variables_of(part))]
            inner = Query(
                part.part, free=part.variables, bound=outer, members=self._members, facts=self._facts
            )
            return _none_of(inner)
        if variables_of(part) <= bound:
            return _equal(part) if part.atom.predicate == "=" else _test(part)
        allowed = {
            term[1:]: frozenset(self._members[types[term[1:]]])
            for term in part.atom.terms
            if term.startswith("?") and term[1:] not in bound
        }
        return _bind(part.atom, allowed)


_IMPOSSIBLE = float("inf")


def _run(steps: Sequence[Step], position: int, facts: FactBase, values: Binding) -> Iterator[None]:
    if position == len(steps):
        yield
        return
    for _ in steps[position](facts, values):
        yield from _run(steps, position + 1, facts, values)


def _getters(atom: Atom) -> list[tuple[str | None, str]]:
    """(variable or None, constant) of each term."""
    return [(term[1:], "") if term.startswith("?") else (None, term) for term in atom.terms]


def _test(literal: Literal) -> Step:
    predicate, positive, terms = literal.atom.predicate, literal.positive, _getters(literal.atom)

    def step(facts: FactBase, values: Binding) -> Iterator[None]:
        arguments = tuple(constant if name is None else values[name] for name, constant in terms)
        if facts.holds(predicate, arguments) is positive:
            yield

    return step


def _equal(literal: Literal) -> Step:
    if len(literal.atom.terms) != 2:
        raise InvalidTaskError("PDDL: `=` compares two terms")
    positive, terms = literal.positive, _getters(literal.atom)

    def step(facts: FactBase, values: Binding) -> Iterator[None]:
        left, right = (constant if name is None else values[name] for name, constant in terms)
        if (left == right) is positive:
            yield

    return step


def _bind(atom: Atom, allowed: Mapping[str, frozenset[str]]) -> Step:
    predicate, terms = atom.predicate, _getters(atom)

    def step(facts: FactBase, values: Binding) -> Iterator[None]:
        pattern = [constant if name is None else values.get(name) for name, constant in terms]
        for arguments in facts.match(predicate, pattern):
            bound: Binding = {}
            for (name, _), value in zip(terms, arguments, strict=True):
                if name is None or name not in allowed:
                    continue
                if value not in allowed[name] or bound.setdefault(name, value) != value:
                    break
            else:
                values.update(bound)
                yield
        for name in allowed:
            values.pop(name, None)

    return step


def _enumerate(name: str, members: Sequence[str]) -> Step:
    def step(facts: FactBase, values: Binding) -> Iterator[None]:
        for value in members:
            values[name] = value
            yield
        values.pop(name, None)

    return step


def _none_of(query: Query) -> Step:
    def step(facts: FactBase, values: Binding) -> Iterator[None]:
        if not query.holds(facts, values):
            yield

    return step
