"""Which bindings of its free variables make a PDDL condition true: a small conjunctive query engine.

A condition is brought into disjunctive form (existential quantifiers become free variables, negations sink to
the atoms), and every conjunction is ordered once so that each literal is looked up with as much bound as
possible. What is true is unaffected by the order, only the time: a full list of a household's applicable
actions takes about 0.3 ms, where grounding all actions beforehand, as a planner does, takes 200 ms a game.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from envs.alfworld.facts import FactBase
from envs.alfworld.pddl import And, Atom, Condition, Exists, Forall, Not, Or, Variable
from envs.base import InvalidTaskError

Binding = dict[str, str]
Step = Callable[[FactBase, Binding], Iterator[None]]


@dataclass(frozen=True, slots=True)
class _Literal:
    atom: Atom
    positive: bool


@dataclass(frozen=True, slots=True)
class _Never:
    """No binding of the inner condition may be true: a negated existential quantifier."""

    variables: tuple[Variable, ...]
    part: Condition


_Conjunct = _Literal | _Never


def _normal_form(
    condition: Condition, positive: bool, names: Mapping[str, str], types: dict[str, str]
) -> list[tuple[_Conjunct, ...]]:
    """Disjunction of conjunctions; variables of lifted quantifiers are renamed apart and entered in `types`."""
    if isinstance(condition, Atom):
        terms = tuple("?" + names.get(t[1:], t[1:]) if t.startswith("?") else t for t in condition.terms)
        return [(_Literal(Atom(condition.predicate, terms), positive),)]
    if isinstance(condition, Not):
        return _normal_form(condition.part, not positive, names, types)
    if isinstance(condition, And | Or):
        parts = [_normal_form(part, positive, names, types) for part in condition.parts]
        if isinstance(condition, And) is not positive:
            return [conjunction for part in parts for conjunction in part]
        product: list[tuple[_Conjunct, ...]] = [()]
        for part in parts:
            product = [left + right for left in product for right in part]
        return product
    renamed = {variable.name: _unused(variable.name, types) for variable in condition.variables}
    inner = {**names, **renamed}
    variables = tuple(Variable(renamed[v.name], v.type) for v in condition.variables)
    if isinstance(condition, Exists) is positive:
        types.update({variable.name: variable.type for variable in variables})
        return _normal_form(condition.part, positive, inner, types)
    # Not exists x. c, or forall x. c, which is not exists x. not c.
    part = condition.part if isinstance(condition, Exists) else Not(condition.part)
    return [(_Never(variables, _rename(part, inner)),)]


def _unused(name: str, taken: Mapping[str, str]) -> str:
    while name in taken:
        name += "'"
    return name


def _rename(condition: Condition, names: Mapping[str, str]) -> Condition:
    if isinstance(condition, Atom):
        terms = tuple("?" + names.get(t[1:], t[1:]) if t.startswith("?") else t for t in condition.terms)
        return Atom(condition.predicate, terms)
    if isinstance(condition, Not):
        return Not(_rename(condition.part, names))
    if isinstance(condition, And):
        return And(tuple(_rename(part, names) for part in condition.parts))
    if isinstance(condition, Or):
        return Or(tuple(_rename(part, names) for part in condition.parts))
    hidden = {key: value for key, value in names.items() if key not in {v.name for v in condition.variables}}
    if isinstance(condition, Exists):
        return Exists(condition.variables, _rename(condition.part, hidden))
    return Forall(condition.variables, _rename(condition.part, hidden))


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
        """`facts` only guide the order of the look-ups. Variables in `bound` must be in every binding asked about."""
        self._free = tuple(variable.name for variable in free)
        self._members = members
        self._facts = facts
        types = {variable.name: variable.type for variable in (*free, *bound)}
        known = frozenset(variable.name for variable in bound)
        self._alternatives: list[tuple[Step, ...]] = []
        for conjunction in _normal_form(condition, True, {}, types):
            mentioned = {name for part in conjunction for name in _names(part)}
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
        self, conjunction: Sequence[_Conjunct], wanted: Sequence[str], known: frozenset[str], types: Mapping[str, str]
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
            if isinstance(part, _Literal):
                bound.update(_names(part))
        for name in wanted:
            if name not in bound:
                steps.append(_enumerate(name, self._members[types[name]]))
                bound.add(name)
        return tuple(steps)

    def _cost(self, part: _Conjunct, bound: set[str]) -> float:
        """Expected number of matches; tests come first, but only once everything they mention is bound."""
        if _names(part) <= bound:
            return 0.0
        if isinstance(part, _Never) or not part.positive or part.atom.predicate == "=":
            return _IMPOSSIBLE
        expected = float(self._facts.count(part.atom.predicate))
        for position, term in enumerate(part.atom.terms):
            if not term.startswith("?") or term[1:] in bound:
                expected /= max(1, self._facts.distinct(part.atom.predicate, position))
        return 1.0 + expected

    def _step(self, part: _Conjunct, bound: set[str], types: Mapping[str, str]) -> Step:
        if isinstance(part, _Never):
            outer = [Variable(name, types[name]) for name in sorted(_names(part))]
            inner = Query(
                part.part, free=part.variables, bound=outer, members=self._members, facts=self._facts
            )
            return _none_of(inner)
        if _names(part) <= bound:
            return _equal(part) if part.atom.predicate == "=" else _test(part)
        allowed = {
            term[1:]: frozenset(self._members[types[term[1:]]])
            for term in part.atom.terms
            if term.startswith("?") and term[1:] not in bound
        }
        return _bind(part.atom, allowed)


_IMPOSSIBLE = float("inf")


def _names(part: _Conjunct) -> set[str]:
    """The variables of the outer scope that a conjunct mentions."""
    if isinstance(part, _Literal):
        return {term[1:] for term in part.atom.terms if term.startswith("?")}
    return _mentioned(part.part) - {variable.name for variable in part.variables}


def _mentioned(condition: Condition) -> set[str]:
    if isinstance(condition, Atom):
        return {term[1:] for term in condition.terms if term.startswith("?")}
    if isinstance(condition, Not):
        return _mentioned(condition.part)
    if isinstance(condition, And | Or):
        return {name for part in condition.parts for name in _mentioned(part)}
    return _mentioned(condition.part) - {variable.name for variable in condition.variables}


def _run(steps: Sequence[Step], position: int, facts: FactBase, values: Binding) -> Iterator[None]:
    if position == len(steps):
        yield
        return
    for _ in steps[position](facts, values):
        yield from _run(steps, position + 1, facts, values)


def _getters(atom: Atom) -> list[tuple[str | None, str]]:
    """(variable or None, constant) of each term."""
    return [(term[1:], "") if term.startswith("?") else (None, term) for term in atom.terms]


def _test(literal: _Literal) -> Step:
    predicate, positive, terms = literal.atom.predicate, literal.positive, _getters(literal.atom)

    def step(facts: FactBase, values: Binding) -> Iterator[None]:
        arguments = tuple(constant if name is None else values[name] for name, constant in terms)
        if facts.holds(predicate, arguments) is positive:
            yield

    return step


def _equal(literal: _Literal) -> Step:
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
