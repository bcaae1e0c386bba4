"""Disjunctive normal form of PDDL conditions.

Existential quantifiers become free variables and negations sink to the atoms, so that what remains is a few
conjunctions of look-ups and tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from evalharness.envs.alfworld.pddl import And, Atom, Condition, Exists, Forall, Not, Or, Variable


@dataclass(frozen=True, slots=True)
class Literal:
    atom: Atom
    positive: bool


@dataclass(frozen=True, slots=True)
class Never:
    """No binding of the inner condition may be true: a negated existential quantifier."""

    variables: tuple[Variable, ...]
    part: Condition


Conjunct: TypeAlias = Literal | Never


def normal_form(
    condition: Condition, positive: bool, names: Mapping[str, str], types: dict[str, str]
) -> list[tuple[Conjunct, ...]]:
    """Conjunctions of which one must hold; the variables of lifted quantifiers are entered in `types`."""
    if isinstance(condition, Atom):
        terms = tuple("?" + names.get(t[1:], t[1:]) if t.startswith("?") else t for t in condition.terms)
        return [(Literal(Atom(condition.predicate, terms), positive),)]
    if isinstance(condition, Not):
        return normal_form(condition.part, not positive, names, types)
    if isinstance(condition, And | Or):
        options = [normal_form(part, positive, names, types) for part in condition.parts]
        if isinstance(condition, And) is not positive:
            return [conjunction for option in options for conjunction in option]
        product: list[tuple[Conjunct, ...]] = [()]
        for option in options:
            product = [left + right for left in product for right in option]
        return product
    renamed = {variable.name: _unused(variable.name, types) for variable in condition.variables}
    inner = {**names, **renamed}
    variables = tuple(Variable(renamed[v.name], v.type) for v in condition.variables)
    if isinstance(condition, Exists) is positive:
        types.update({variable.name: variable.type for variable in variables})
        return [
            (*conjunction, *_mention(variables, conjunction))
            for conjunction in normal_form(condition.part, positive, inner, types)
        ]
    # Not exists x. c, or forall x. c, which is not exists x. not c.
    part = condition.part if isinstance(condition, Exists) else Not(condition.part)
    return [(Never(variables, _rename(part, inner)),)]


def _mention(variables: tuple[Variable, ...], conjunction: tuple[Conjunct, ...]) -> list[Literal]:
    """`v = v` for what a conjunction leaves out: nothing of an empty type exists, whatever is said of it."""
    mentioned = {name for part in conjunction for name in variables_of(part)}
    return [
        Literal(Atom("=", (f"?{variable.name}", f"?{variable.name}")), True)
        for variable in variables
        if variable.name not in mentioned
    ]


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


def variables_of(part: Conjunct) -> set[str]:
    """The variables of the outer scope that a conjunct mentions."""
    if isinstance(part, Literal):
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
