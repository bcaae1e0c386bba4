"""Find the values of free variables that make a PDDL condition true (a small conjunctive query engine).

The literals of a conjunction are sorted once, so that the cheapest look-up comes first. Finding all applicable actions
of a household takes about 0.3 ms. A planner would instead instantiate every action before the game, which takes 200 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from evalharness.envs.alfworld.pddl import Atom, Condition, Literal, Variable

Arguments = tuple[str, ...]


class FactBase:
    """The set of true ground atoms, indexed by predicate and by each argument."""

    def __init__(self) -> None:
        # Use dictionaries as ordered sets, because iteration must not depend on the hash seed.
        self._all: dict[str, dict[Arguments, None]] = {}
        self._by_argument: dict[tuple[str, int, str], dict[Arguments, None]] = {}

    def copy(self) -> FactBase:
        other = FactBase()
        other._all = {key: facts.copy() for key, facts in self._all.items()}
        other._by_argument = {key: facts.copy() for key, facts in self._by_argument.items()}
        return other

    def add(self, predicate: str, arguments: Arguments) -> None:
        known = self._all.setdefault(predicate, {})
        if arguments in known:
            return
        known[arguments] = None
        for position, value in enumerate(arguments):
            self._by_argument.setdefault((predicate, position, value), {})[arguments] = None

    def discard(self, predicate: str, arguments: Arguments) -> None:
        known = self._all.get(predicate, {})
        if arguments not in known:
            return
        del known[arguments]
        for position, value in enumerate(arguments):
            del self._by_argument[predicate, position, value][arguments]

    def holds(self, predicate: str, arguments: Arguments) -> bool:
        return arguments in self._all.get(predicate, {})

    def of(self, predicate: str) -> Iterable[Arguments]:
        return self._all.get(predicate, {})

    def candidates(self, predicate: str, pattern: Sequence[str | None]) -> Iterable[Arguments]:
        """Return the facts that have the pattern's rarest argument, a superset of those that fit the whole pattern.
        None in the pattern fits any value."""
        best: dict[Arguments, None] | None = None
        for position, value in enumerate(pattern):
            if value is not None:
                facts = self._by_argument.get((predicate, position, value))
                if not facts:
                    return ()
                if best is None or len(facts) < len(best):
                    best = facts
        return self._all.get(predicate, {}) if best is None else best

    def match(self, predicate: str, pattern: Sequence[str | None]) -> list[Arguments]:
        return [
            arguments
            for arguments in self.candidates(predicate, pattern)
            if len(arguments) == len(pattern)
            and all(wanted in (None, value) for wanted, value in zip(pattern, arguments, strict=True))
        ]

    def count(self, predicate: str) -> int:
        return len(self._all.get(predicate, {}))

    def distinct(self, predicate: str, position: int) -> int:
        """Return the number of different values of this argument."""
        return len({arguments[position] for arguments in self.of(predicate) if position < len(arguments)})


Binding = dict[str, str]
Step = Callable[[FactBase, Binding], Iterator[None]]


class Query:
    """A compiled condition. `members`: type -> objects of that type in the game."""

    def __init__(
        self,
        condition: Condition,
        *,
        free: Sequence[Variable] = (),
        bound: Sequence[Variable] = (),
        members: Mapping[str, Sequence[str]],
        facts: FactBase,
    ) -> None:
        """Compile the condition. `bound`: variables whose values the caller gives to `solutions` and `holds`. `facts`:
        typical facts, to estimate which look-ups have the fewest results."""
        self._free = tuple(variable.name for variable in free)
        self._members = members
        self._facts = facts
        types = {variable.name: variable.type for variable in (*free, *bound, *condition.lifted)}
        known = frozenset(variable.name for variable in bound)
        self._alternatives: list[tuple[Step, ...]] = []
        for conjunction in condition.conjunctions:
            mentioned = set[str]().union(*(literal.variables for literal in conjunction))
            wanted = [name for name in types if name in mentioned or name in self._free]
            if all(members.get(types[name]) for name in wanted):
                self._alternatives.append(self._order(conjunction, wanted, known, types))

    def solutions(self, facts: FactBase, binding: Mapping[str, str] | None = None) -> list[tuple[str, ...]]:
        """Return each combination of values of the free variables with which the condition is true."""
        values_found: dict[tuple[str, ...], None] = {}
        for steps in self._alternatives:
            values: Binding = dict(binding or {})
            for _ in _run(steps, 0, facts, values):
                values_found[tuple(values[name] for name in self._free)] = None
        return list(values_found)

    def holds(self, facts: FactBase, binding: Mapping[str, str] | None = None) -> bool:
        for steps in self._alternatives:
            for _ in _run(steps, 0, facts, dict(binding or {})):
                return True
        return False

    def _order(
        self,
        conjunction: Sequence[Literal],
        wanted: Sequence[str],
        known: frozenset[str],
        types: Mapping[str, str],
    ) -> tuple[Step, ...]:
        steps: list[Step] = []
        bound = set(known)
        waiting = list(conjunction)
        while waiting:
            costs = [(self._cost(literal, bound), position) for position, literal in enumerate(waiting)]
            cost, position = min(costs)
            if cost == _IMPOSSIBLE:
                # Only tests (negations and `=`) are left. They need a value for a variable, so try all its objects.
                name = next(name for name in wanted if name not in bound)
                steps.append(_enumerate(name, self._members[types[name]]))
                bound.add(name)
                continue
            literal = waiting.pop(position)
            fresh = literal.variables - bound
            allowed = {name: frozenset(self._members[types[name]]) for name in fresh}
            steps.append(_bind(literal.atom, allowed) if fresh else _test(literal))
            bound |= fresh
        steps += [_enumerate(name, self._members[types[name]]) for name in wanted if name not in bound]
        return tuple(steps)

    def _cost(self, literal: Literal, bound: set[str]) -> float:
        """Return the expected number of matching facts; 0 for a literal whose variables all have values. The literal
        with the lowest cost is evaluated first."""
        predicate, terms = literal.atom.predicate, literal.atom.terms
        if literal.variables <= bound:
            return 0.0
        if not literal.positive or predicate == "=":
            return _IMPOSSIBLE
        expected = float(self._facts.count(predicate))
        for position, term in enumerate(terms):
            if not term.startswith("?") or term[1:] in bound:
                expected /= max(1, self._facts.distinct(predicate, position))
        return 1.0 + expected


_IMPOSSIBLE = float("inf")


def _run(steps: Sequence[Step], position: int, facts: FactBase, values: Binding) -> Iterator[None]:
    if position == len(steps):
        yield
        return
    for _ in steps[position](facts, values):
        yield from _run(steps, position + 1, facts, values)


def _getters(atom: Atom) -> list[tuple[str | None, str]]:
    """Map each term to (variable, "") or to (None, constant)."""
    return [(term[1:], "") if term.startswith("?") else (None, term) for term in atom.terms]


def _test(literal: Literal) -> Step:
    predicate, positive, terms = literal.atom.predicate, literal.positive, _getters(literal.atom)

    def step(facts: FactBase, values: Binding) -> Iterator[None]:
        arguments = tuple(constant if name is None else values[name] for name, constant in terms)
        true = arguments[0] == arguments[1] if predicate == "=" else facts.holds(predicate, arguments)
        if true is positive:
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
