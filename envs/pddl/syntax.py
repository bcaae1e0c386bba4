"""Parse PDDL text with the features that the four domains use: STRIPS, types and constants. Raise PddlError for others.

We do not use the package `pddl`: it refuses AgentBoard's tyreworld domain, which uses types without `:typing`, and it
needs 70 to 250 ms per domain instead of 0.1 to 0.5 ms. We do not use pddlgym: it requires pillow below 10, which
supports Python only up to 3.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from evalharness.envs.pddl_text import (
    ROOT_TYPE,
    PddlError,
    Tree,
    as_atom,
    as_list,
    as_word,
    parse_typed,
    sections,
)

Atom: TypeAlias = tuple[str, ...]
"""A predicate name and its arguments, for example `("on", "b1", "b2")`."""


@dataclass(frozen=True)
class Operator:
    """An action schema. The arguments of its atoms are variables (`?x`) or constants."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    """(variable, type) of each parameter, in the order of the text."""
    precondition: tuple[Atom, ...]
    add: tuple[Atom, ...]
    delete: tuple[Atom, ...]


@dataclass(frozen=True)
class Domain:
    name: str
    supertype: dict[str, str]
    """Type -> parent type, for every declared type; the root is `object`."""
    constants: dict[str, str]
    """Object -> type."""
    arity: dict[str, int]
    """Predicate -> number of arguments."""
    operators: tuple[Operator, ...]

    def is_a(self, kind: str, ancestor: str) -> bool:
        seen: set[str] = set()
        while kind != ancestor:
            if kind not in self.supertype or kind in seen:
                return False
            seen.add(kind)
            kind = self.supertype[kind]
        return True


@dataclass(frozen=True)
class Problem:
    name: str
    domain: str
    objects: dict[str, str]
    """Object -> type. The domain's constants are missing, unless the text of the problem lists them, too."""
    initial: frozenset[Atom]
    goal: tuple[Atom, ...]
    """The atoms that must be true, in the order of the text."""


@lru_cache(maxsize=64)
def parse_domain(text: str) -> Domain:
    title, parts = sections(text, "domain")
    supertype: dict[str, str] = {}
    constants: dict[str, str] = {}
    arity: dict[str, int] = {}
    operators: list[Operator] = []
    for head, body in parts:
        if head == ":requirements":
            pass
        elif head == ":types":
            supertype.update(parse_typed(body, "types"))
        elif head == ":constants":
            constants.update(parse_typed(body, "constants"))
        elif head == ":predicates":
            for declared in body:
                name, *arguments = as_list(declared, "predicate")
                arity[as_word(name, "predicate name")] = len(parse_typed(arguments, "predicate"))
        elif head == ":action":
            operators.append(_operator(body))
        else:
            raise PddlError(f"domain section {head} is beyond STRIPS with types")
    for parent in list(supertype.values()):
        supertype.setdefault(parent, ROOT_TYPE)
    supertype.pop(ROOT_TYPE, None)
    domain = Domain(title, supertype, constants, arity, tuple(operators))
    for operator in operators:
        for atom in (*operator.precondition, *operator.add, *operator.delete):
            _check_atom(atom, domain, {*dict(operator.parameters), *constants}, operator.name)
    return domain


def parse_problem(text: str, domain: Domain) -> Problem:
    title, parts = sections(text, "problem")
    by_keyword = dict(parts)
    unknown = set(by_keyword) - {":domain", ":objects", ":init", ":goal", ":requirements"}
    if unknown:
        raise PddlError(f"problem section {min(unknown)} is beyond STRIPS with types")
    missing = {":domain", ":init", ":goal"} - set(by_keyword)
    if missing:
        raise PddlError(f"the problem has no {min(missing)} section")
    objects = parse_typed(by_keyword.get(":objects", []), "objects")
    names = {*objects, *domain.constants}
    initial = frozenset(_atom(literal) for literal in by_keyword[":init"])
    goal = _conjunction(by_keyword[":goal"][0]) if by_keyword[":goal"] else []
    for atom in (*initial, *goal):
        _check_atom(atom, domain, names, "problem")
    for name, kind in objects.items():
        if kind != ROOT_TYPE and kind not in domain.supertype:
            raise PddlError(f"object {name} has the undeclared type {kind}")
    return Problem(
        title,
        as_word(by_keyword[":domain"][0], "domain name"),
        objects,
        initial,
        tuple(dict.fromkeys(goal)),
    )


def _operator(body: list[Tree]) -> Operator:
    name = as_word(body[0], "action name") if body else ""
    if len(body) % 2 == 0:
        raise PddlError(f"action {name}: a keyword without a value")
    parts = {as_word(key, name): value for key, value in zip(body[1::2], body[2::2], strict=True)}
    unknown = set(parts) - {":parameters", ":precondition", ":effect"}
    if unknown:
        raise PddlError(f"action {name}: {min(unknown)} is beyond STRIPS with types")
    parameters = parts.get(":parameters", [])
    if isinstance(parameters, str):
        raise PddlError(f"action {name}: :parameters is not a list")
    add: list[Atom] = []
    delete: list[Atom] = []
    for literal in _conjuncts(parts.get(":effect", [])):
        if isinstance(literal, list) and len(literal) == 2 and literal[0] == "not":
            delete.append(_atom(literal[1]))
        else:
            add.append(_atom(literal))
    return Operator(
        name,
        tuple(parse_typed(parameters, name).items()),
        tuple(_conjunction(parts.get(":precondition", []))),
        tuple(add),
        tuple(delete),
    )


def _conjuncts(tree: Tree) -> list[Tree]:
    if isinstance(tree, list) and (not tree or tree[0] == "and"):
        return tree[1:]
    return [tree]


def _conjunction(tree: Tree) -> list[Atom]:
    return [_atom(literal) for literal in _conjuncts(tree)]


_BEYOND = frozenset({"not", "and", "or", "=", "forall", "exists", "imply", "when", "increase"})


def _atom(tree: Tree) -> Atom:
    if as_word(as_list(tree, "atom")[0], "predicate name") in _BEYOND:
        raise PddlError(f"({tree[0]} ...) is beyond STRIPS here")
    return as_atom(tree)


def _check_atom(atom: Atom, domain: Domain, names: set[str], where: str) -> None:
    predicate, *arguments = atom
    if domain.arity.get(predicate) != len(arguments):
        raise PddlError(f"{where}: ({' '.join(atom)}) fits no declared predicate")
    for name in arguments:
        if name not in names:
            raise PddlError(f"{where}: ({' '.join(atom)}) names the unknown {name}")
