"""Reads PDDL text: STRIPS with types and constants, which is all that the four domains use.

Why a reader of our own: the `pddl` package refuses the published tyreworld domain (it uses types without
declaring `:typing`) and needs 70 to 250 ms a domain file, against 0.1 to 0.5 ms here; pddlgym pins pillow
below 10, which ends at Python 3.11. Anything beyond STRIPS is an error here, never a silent misreading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

Atom: TypeAlias = tuple[str, ...]
"""A predicate name and its arguments, `("on", "b1", "b2")`."""

SExpression: TypeAlias = "str | list[SExpression]"

# A variable starts a token of its own: the published barman domain says "?l - level?l1 - level".
_TOKEN = re.compile(r"[()]|\?[^\s()?]+|[^\s()?]+")
_DEEPEST = 50


class PddlError(ValueError):
    """The text is not PDDL, or is PDDL that this engine does not play."""


@dataclass(frozen=True)
class Operator:
    """An action schema. Atoms name its variables (`?x`) or constants."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    """(variable, type) in the order of the file."""
    precondition: tuple[Atom, ...]
    add: tuple[Atom, ...]
    delete: tuple[Atom, ...]


@dataclass(frozen=True)
class Domain:
    name: str
    supertype: dict[str, str]
    """Type -> its parent; every declared type is a key, the root is `object`."""
    constants: dict[str, str]
    """Object -> type."""
    arity: dict[str, int]
    """Predicate -> number of arguments."""
    operators: tuple[Operator, ...]

    def is_a(self, kind: str, ancestor: str) -> bool:
        while kind != ancestor:
            if kind not in self.supertype:
                return False
            kind = self.supertype[kind]
        return True


@dataclass(frozen=True)
class Problem:
    name: str
    domain: str
    objects: dict[str, str]
    """Object -> type, without the domain's constants unless the file repeats them."""
    initial: frozenset[Atom]
    goal: tuple[Atom, ...]
    """A conjunction, in the order of the file."""


@lru_cache(maxsize=64)
def parse_domain(text: str) -> Domain:
    sections = _sections(text, "domain")
    supertype: dict[str, str] = {}
    constants: dict[str, str] = {}
    arity: dict[str, int] = {}
    operators: list[Operator] = []
    for head, body in sections[1:]:
        if head == ":requirements":
            pass
        elif head == ":types":
            supertype.update(_typed(body, "types"))
        elif head == ":constants":
            constants.update(_typed(body, "constants"))
        elif head == ":predicates":
            for declared in body:
                name, *arguments = _list(declared, "predicate")
                arity[_word(name, "predicate name")] = len(_typed(arguments, "predicate"))
        elif head == ":action":
            operators.append(_operator(body))
        else:
            raise PddlError(f"domain section {head} is beyond STRIPS with types")
    for parent in list(supertype.values()):
        supertype.setdefault(parent, "object")
    supertype.pop("object", None)
    domain = Domain(sections[0][0], supertype, constants, arity, tuple(operators))
    for operator in operators:
        for atom in (*operator.precondition, *operator.add, *operator.delete):
            _check_atom(atom, domain, {*dict(operator.parameters), *constants}, operator.name)
    return domain


def parse_problem(text: str, domain: Domain) -> Problem:
    sections = _sections(text, "problem")
    found = dict(sections[1:])
    unknown = set(found) - {":domain", ":objects", ":init", ":goal", ":requirements"}
    if unknown:
        raise PddlError(f"problem section {min(unknown)} is beyond STRIPS with types")
    missing = {":domain", ":init", ":goal"} - set(found)
    if missing:
        raise PddlError(f"the problem has no {min(missing)} section")
    objects = _typed(found.get(":objects", []), "objects")
    names = {*objects, *domain.constants}
    initial = frozenset(_atom(literal) for literal in found[":init"])
    goal = _conjunction(found[":goal"][0]) if found[":goal"] else []
    for atom in (*initial, *goal):
        _check_atom(atom, domain, names, "problem")
    for name, kind in objects.items():
        if kind != "object" and kind not in domain.supertype:
            raise PddlError(f"object {name} has the undeclared type {kind}")
    return Problem(
        sections[0][0],
        _word(found[":domain"][0], "domain name"),
        objects,
        initial,
        tuple(dict.fromkeys(goal)),
    )


def _sections(text: str, kind: str) -> list[tuple[str, list[SExpression]]]:
    """[(name, []), (":types", [...]), ...] of `(define (kind name) (:types ...) ...)`."""
    tree = _list(_read(text), "file")
    if len(tree) < 2 or tree[0] != "define":
        raise PddlError("the file does not start with (define ...)")
    title = _list(tree[1], "title")
    if len(title) != 2 or title[0] != kind:
        raise PddlError(f"the file does not define a {kind}")
    sections: list[tuple[str, list[SExpression]]] = [(_word(title[1], "name"), [])]
    for section in tree[2:]:
        head, *body = _list(section, "section")
        sections.append((_word(head, "section"), body))
    return sections


def _read(text: str) -> SExpression:
    text = re.sub(r";[^\n]*", "", text).lower()
    tokens = iter(_TOKEN.findall(text))
    if next(tokens, None) != "(":
        raise PddlError("the file does not start with (")
    tree = _read_list(tokens, 1)
    if next(tokens, None) is not None:
        raise PddlError("text after the closing )")
    return tree


def _read_list(tokens: Iterator[str], depth: int) -> SExpression:
    if depth > _DEEPEST:
        raise PddlError(f"nested more than {_DEEPEST} deep")
    items: list[SExpression] = []
    for token in tokens:
        if token == ")":
            return items
        items.append(_read_list(tokens, depth + 1) if token == "(" else token)
    raise PddlError("a ( is never closed")


def _list(tree: SExpression, what: str) -> list[SExpression]:
    if isinstance(tree, str) or not tree:
        raise PddlError(f"{what}: expected a non-empty list, got {tree!r}")
    return tree


def _word(tree: SExpression, what: str) -> str:
    if not isinstance(tree, str):
        raise PddlError(f"{what}: expected a word, got a list")
    return tree


def _typed(items: list[SExpression], what: str) -> dict[str, str]:
    """`a b - kind c` -> {"a": "kind", "b": "kind", "c": "object"}."""
    found: dict[str, str] = {}
    pending: list[str] = []
    words = iter([_word(item, what) for item in items])
    for word in words:
        if word != "-":
            pending.append(word)
            continue
        kind = next(words, None)
        if kind is None or not pending:
            raise PddlError(f"{what}: a dash without a type")
        found.update(dict.fromkeys(pending, kind))
        pending = []
    found.update(dict.fromkeys(pending, "object"))
    return found


def _operator(body: list[SExpression]) -> Operator:
    name = _word(body[0], "action name") if body else ""
    if len(body) % 2 == 0:
        raise PddlError(f"action {name}: a keyword without a value")
    parts = {_word(key, name): value for key, value in zip(body[1::2], body[2::2], strict=True)}
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
        tuple(_typed(parameters, name).items()),
        tuple(_conjunction(parts.get(":precondition", []))),
        tuple(add),
        tuple(delete),
    )


def _conjuncts(tree: SExpression) -> list[SExpression]:
    if isinstance(tree, list) and (not tree or tree[0] == "and"):
        return tree[1:]
    return [tree]


def _conjunction(tree: SExpression) -> list[Atom]:
    return [_atom(literal) for literal in _conjuncts(tree)]


def _atom(tree: SExpression) -> Atom:
    head, *arguments = _list(tree, "atom")
    if head in {"not", "and", "or", "=", "forall", "exists", "imply", "when", "increase"}:
        raise PddlError(f"({head} ...) is beyond STRIPS here")
    return tuple(_word(word, "atom") for word in (head, *arguments))


def _check_atom(atom: Atom, domain: Domain, names: set[str], where: str) -> None:
    predicate, *arguments = atom
    if domain.arity.get(predicate) != len(arguments):
        raise PddlError(f"{where}: ({' '.join(atom)}) fits no declared predicate")
    for name in arguments:
        if name not in names:
            raise PddlError(f"{where}: ({' '.join(atom)}) names the unknown {name}")
