"""Parse PDDL text into conditions and action schemas.

The parser accepts the features of ADL that ALFWorld's games use: all except universal quantifiers. It splits a text
into tokens as Fast Downward does, the planner in TextWorld (`evalharness.envs.pddl_text`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, product

from evalharness.envs.pddl_text import ROOT_TYPE, PddlError, Tree, as_atom, as_word, parse_typed, sections


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    """Name without the question mark."""
    type: str


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate over terms. A term that begins with `?` is a variable; any other term is a constant."""

    predicate: str
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Literal:
    atom: Atom
    positive: bool

    @property
    def variables(self) -> set[str]:
        return {term[1:] for term in self.atom.terms if term.startswith("?")}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in disjunctive normal form. It is true if, for some values of the lifted variables, one of its
    conjunctions is true."""

    conjunctions: tuple[tuple[Literal, ...], ...]
    lifted: tuple[Variable, ...]
    """Variables of the existential quantifiers, renamed so that each name is unique."""


@dataclass(frozen=True, slots=True)
class Effect:
    atom: Atom
    adds: bool
    """True if the atom becomes true, False if it becomes false."""
    when: Condition | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    name: str
    parameters: tuple[Variable, ...]
    precondition: Condition
    effects: tuple[Effect, ...]


@dataclass(frozen=True)
class Domain:
    supertype: dict[str, str]
    constants: dict[str, str]
    """Name of a constant -> type."""
    schemas: tuple[Schema, ...]


@dataclass(frozen=True)
class Problem:
    objects: dict[str, str]
    """Name of an object -> type, including the domain's constants."""
    init: tuple[Atom, ...]
    goal: Condition
    supertype: dict[str, str] = field(default_factory=dict)

    def is_a(self, type_name: str, wanted: str) -> bool:
        return wanted in self.lineage(type_name)

    def lineage(self, type_name: str) -> Iterator[str]:
        """Yield the type and its supertypes, up to the root."""
        seen = {ROOT_TYPE}
        while type_name not in seen:
            yield type_name
            seen.add(type_name)
            type_name = self.supertype.get(type_name, ROOT_TYPE)
        yield ROOT_TYPE


@lru_cache(maxsize=4)
def parse_domain(text: str) -> Domain:
    """Parse a domain. All games of a suite share one domain, so the result is cached."""
    _, parts = sections(text, "domain")
    by_keyword = dict(parts)
    return Domain(
        supertype=parse_typed(by_keyword.get(":types", []), "types"),
        constants=parse_typed(by_keyword.get(":constants", []), "constants"),
        schemas=tuple(_schema(body) for name, body in parts if name == ":action"),
    )


def parse_problem(text: str, domain: Domain) -> Problem:
    _, parts = sections(text, "problem")
    by_keyword = dict(parts)
    objects = {**domain.constants, **parse_typed(by_keyword.get(":objects", []), "objects")}
    init = []
    for fact in by_keyword.get(":init", []):
        if isinstance(fact, str) or not fact:
            raise PddlError(f"PDDL: an initial fact should be a list, not {fact!r}")
        if fact[0] != "=":  # skip numeric fluents (costs, distances): no condition reads them
            init.append(_atom(fact))
    goals = by_keyword.get(":goal", [])
    if len(goals) != 1:
        raise PddlError("PDDL: a problem needs exactly one goal")
    return Problem(objects, tuple(dict.fromkeys(init)), condition_of(goals[0]), domain.supertype)


def _variables(tree: Tree) -> tuple[Variable, ...]:
    if isinstance(tree, str):
        raise PddlError(f"PDDL: expected a list of variables, found {tree!r}")
    pairs = parse_typed(tree, "variables").items()
    return tuple(Variable(name.removeprefix("?"), type_name) for name, type_name in pairs)


def _atom(tree: Tree) -> Atom:
    predicate, *terms = as_atom(tree)
    return Atom(predicate, tuple(terms))


def condition_of(tree: Tree, parameters: Sequence[Variable] = ()) -> Condition:
    """Parse a condition. Rename a quantified variable that has the name of one of the parameters."""
    types = {variable.name: variable.type for variable in parameters}
    conjunctions = _conjunctions(tree, True, {}, types)
    lifted = [Variable(name, type_name) for name, type_name in list(types.items())[len(parameters) :]]
    return Condition(tuple(conjunctions), tuple(lifted))


def _conjunctions(
    tree: Tree, positive: bool, names: Mapping[str, str], types: dict[str, str]
) -> list[tuple[Literal, ...]]:
    """Return the conjunctions of a condition, and add its quantified variables to `types` (variable -> type).

    `names`: quantified variable in the text -> its unique name in `types`.
    """
    if isinstance(tree, str):
        raise PddlError(f"PDDL: expected a condition, found {tree!r}")
    head, rest = tree[0] if tree else "and", tree[1:]
    match head, len(rest):
        case (("and" | "or"), _):
            options = [_conjunctions(part, positive, names, types) for part in rest]
            if (head == "and") is positive:
                return [tuple(chain(*choice)) for choice in product(*options)]
            return list(chain(*options))
        case "not", 1:
            return _conjunctions(rest[0], not positive, names, types)
        case "imply", 2:
            return _conjunctions(["or", ["not", rest[0]], rest[1]], positive, names, types)
        case "exists", 2 if positive:
            return _existential(_variables(rest[0]), rest[1], names, types)
        case (("not" | "imply" | "exists" | "forall"), _):
            raise PddlError(f"PDDL: this form of `{head}` is not supported in a condition")
    atom = _atom(tree)
    if atom.predicate == "=" and len(atom.terms) != 2:
        raise PddlError("PDDL: `=` compares two terms")
    terms = tuple("?" + names.get(t[1:], t[1:]) if t.startswith("?") else t for t in atom.terms)
    return [(Literal(Atom(atom.predicate, terms), positive),)]


def _existential(
    variables: Sequence[Variable], part: Tree, names: Mapping[str, str], types: dict[str, str]
) -> list[tuple[Literal, ...]]:
    own = {}
    for variable in variables:
        name = variable.name
        while name in types:
            name += "'"
        types[name], own[variable.name] = variable.type, name
    # If a conjunction does not mention a variable v, add `v = v`, which is true only if an object of its type exists.
    same = {name: Literal(Atom("=", (f"?{name}", f"?{name}")), True) for name in own.values()}
    return [
        (
            *by_keyword,
            *(same[name] for name in same if not any(name in literal.variables for literal in by_keyword)),
        )
        for by_keyword in _conjunctions(part, True, {**names, **own}, types)
    ]


def _effects(tree: Tree, parameters: Sequence[Variable], when: Condition | None = None) -> Iterator[Effect]:
    if isinstance(tree, str):
        raise PddlError(f"PDDL: expected an effect, found {tree!r}")
    if not tree:
        return
    head, rest = tree[0], tree[1:]
    if head == "and":
        for part in rest:
            yield from _effects(part, parameters, when)
    elif head == "when" and len(rest) == 2 and when is None:
        yield from _effects(rest[1], parameters, condition_of(rest[0], parameters))
    elif head == "not" and len(rest) == 1 and isinstance(rest[0], list):
        yield Effect(_atom(rest[0]), adds=False, when=when)
    elif head in ("when", "not", "forall"):
        raise PddlError(f"PDDL: this form of `{head}` is not supported in an effect")
    elif head not in ("increase", "decrease", "assign"):
        yield Effect(_atom(tree), adds=True, when=when)


def _schema(section: Sequence[Tree]) -> Schema:
    fields = {str(key): value for key, value in zip(section[1::2], section[2::2], strict=False)}
    parameters = _variables(fields.get(":parameters", []))
    return Schema(
        name=as_word(section[0], "action name") if section else "",
        parameters=parameters,
        precondition=condition_of(fields.get(":precondition", []), parameters),
        effects=tuple(_effects(fields.get(":effect", []), parameters)),
    )
